"""What is shipped: an archive that builds without git, and wheels that need no compiler."""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import geomix

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 and later read TOML")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


in_repository = pytest.mark.skipif(not WORKFLOWS, reason="an archive has no workflows")


# --- files ---


@in_repository
def test_every_link_of_the_readme_works_outside_the_repository():
    repository = PROJECT["urls"]["Repository"]
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)", text) + re.findall(
        r"^\[[^\]]+\]: (\S+)", text, re.MULTILINE
    )
    used = set(re.findall(r"\]\[([^\]]+)\]", text))
    assert used == set(re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE))
    assert links
    for link in links:
        assert link.startswith("https://"), link
        for root in (f"{repository}/blob/main/", f"{repository}/tree/main/"):
            if link.startswith(root):
                assert (ROOT / link.removeprefix(root)).exists(), link
        if "raw.githubusercontent.com" in link:
            assert (ROOT / link.split("/main/", 1)[1]).exists(), link


@in_repository
def test_every_address_of_the_project_is_listed_and_can_be_set(tmp_path):
    """One script knows the places, so that none keeps the placeholder after the first upload."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone")
    copy = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, copy], check=True)
    script = shutil.copy(ROOT / ".ci" / "project_address.py", copy / ".ci")

    def run(*arguments):
        command = [sys.executable, str(script), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    listed = run()
    assert listed.returncode == 1
    assert "pyproject.toml:" in listed.stdout
    assert "README.md:" in listed.stdout
    assert run("--set", "someone/else").returncode == 0
    found = tomllib.loads((copy / "pyproject.toml").read_text())["project"]["urls"]
    assert found["Documentation"] == "https://someone.github.io/else"
    assert set(found) == set(PROJECT["urls"])
    text = (copy / "README.md").read_text() + (copy / "recipe" / "recipe.yaml").read_text()
    assert "geomix/geomix" not in text.replace("src/geomix/geomix", "")


@in_repository
def test_the_version_is_the_same_everywhere():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert newest == geomix.__version__
    assert f'version: "{newest}"' in (ROOT / "recipe" / "recipe.yaml").read_text()
    assert f"version: {newest}" in (ROOT / "CITATION.cff").read_text()


@in_repository
def test_the_recipe_has_the_dependencies_of_the_package():
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    run = recipe[recipe.index("  run:") : recipe.index("tests:")]
    for wanted in PROJECT["dependencies"]:
        name = re.match(r"[a-z-]+", wanted)[0]
        assert re.search(rf"^\s+- {name}\b", run, re.MULTILINE), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_the_version_of_every_action(path):
    used = re.findall(r"uses: (\S+)", path.read_text())
    assert used
    for action in used:
        assert re.search(r"@v\d+\.\d+\.\d+$", action), action


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_whole_and_keep_no_credentials(path):
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load(path.read_text())
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {"contents": "read"}
    for job in jobs.values():
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= set(jobs)
        matrix = job.get("strategy", {}).get("matrix", {})
        assert set(re.findall(r"matrix\.(\w+)", str(job))) <= set(matrix)
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_a_missing_core_is_said_and_named_with_a_remedy():
    script = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "sys.modules['geomix._native'] = None\n"
        "import geomix.core.kernel\n"
    )

    def run(**settings):
        environment = {k: v for k, v in os.environ.items() if k != "GEOMIX_KERNEL"} | settings
        command = [sys.executable, "-c", script]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    told = run().stderr
    assert "RuntimeWarning: geomix was installed without its compiled core" in told
    assert "GEOMIX_KERNEL=numpy hides this warning" in told
    assert run(GEOMIX_KERNEL="numpy").returncode == 0


# --- packages, from end to end ---


def without_compilers(folder):
    """A PATH with a shell's tools, CMake and no compiler, and an environment that names none."""
    for tool in ("sh", "uname", "ldd", "env", "cmake", "ninja"):
        found = shutil.which(tool)
        if found:
            (folder / tool).symlink_to(found)
    environment = {k: v for k, v in os.environ.items() if k not in ("CC", "CXX", "GEOMIX_KERNEL")}
    return environment | {"PATH": str(folder)}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The sdist, unpacked where there is no git."""
    pytest.importorskip("scikit_build_core")
    pytest.importorskip("nanobind")
    build = pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("sdist")
    made = build.ProjectBuilder(ROOT).build("sdist", folder)
    with tarfile.open(made) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return unpacked


@pytest.fixture(scope="module")
def wheel(archive, tmp_path_factory):
    import build

    folder = tmp_path_factory.mktemp("wheel")
    return Path(build.ProjectBuilder(archive).build("wheel", folder))


@pytest.fixture
def fresh(tmp_path):
    """Installs a wheel into a new environment, beside the libraries of this one."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    others = [p for p in sys.path if p.endswith("-packages")]
    python = tmp_path / "venv" / "bin" / "python"

    def install(path, environment):
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
        command += ["--target", str(site), str(path)]
        subprocess.run(command, check=True, env=environment)
        (site / "others.pth").write_text("\n".join(others))
        return python

    return install


@pytest.mark.slow
def test_the_archive_has_what_a_build_needs_and_nothing_of_the_repository(archive):
    names = {path.relative_to(archive).as_posix() for path in archive.rglob("*")}
    assert {"CMakeLists.txt", "native/bind/module.cpp", "LICENSE", "licenses/nanobind.txt"} <= names
    assert not any(
        name.startswith((".git/", ".github/", ".venv", "build/", "benchmarks")) for name in names
    )


@pytest.mark.slow
def test_a_wheel_carries_the_core_the_notices_and_the_links(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (place,) = [name for name in names if name.endswith("METADATA")]
        metadata = email.message_from_bytes(packed.read(place))
    assert any(re.search(r"geomix/_native\.", name) for name in names)
    assert {"LICENSE", "licenses/nanobind.txt", "licenses/robin_map.txt"} <= set(
        metadata.get_all("License-File")
    )
    links = dict(one.split(", ") for one in metadata.get_all("Project-URL"))
    assert {"Documentation", "Repository", "Issues", "Changelog"} <= set(links)
    assert "Programming Language :: Python :: 3.14" in metadata.get_all("Classifier")


@pytest.mark.slow
def test_a_wheel_installs_and_runs_without_a_compiler(wheel, fresh, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    environment = without_compilers(tools)
    python = fresh(wheel, environment)
    script = ROOT / "tests" / "smoke.py"
    command = [python, "-W", "error::RuntimeWarning", script]
    ran = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "with the compiled core" in ran.stdout


@pytest.mark.slow
def test_a_build_without_a_compiler_says_so_and_gives_the_numpy_version(archive, fresh, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    environment = without_compilers(tools)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    command += ["--skip-dependency-check", "--outdir", tmp_path]
    # A folder of its own: that of an earlier build knows a compiler.
    command += [f"--config-setting=build-dir={tmp_path / 'build'}"]
    ran = subprocess.run(
        [*command, archive], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "geomix was built without its C++ core" in ran.stdout + ran.stderr
    (made,) = tmp_path.glob("*.whl")
    assert made.name.endswith("-py3-none-any.whl")
    python = fresh(made, environment)
    fit = (
        "import warnings; warnings.simplefilter('error', RuntimeWarning)\n"
        "from sklearn.datasets import load_iris\n"
        "from geomix import GeometricMixtureClassifier\n"
        "X, y = load_iris(return_X_y=True)\n"
        "clf = GeometricMixtureClassifier(1, lift='linear', l2=1e-3).fit(X, y)\n"
        "assert clf.score(X, y) > 0.9\n"
    )
    quiet = environment | {"GEOMIX_KERNEL": "numpy"}
    subprocess.run([python, "-c", fit], check=True, env=quiet, cwd=tmp_path)
    told = subprocess.run(
        [python, "-c", fit], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert "installed without its compiled core" in told.stderr
