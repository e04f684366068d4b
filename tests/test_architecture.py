"""The package is built as in ``docs/design/architecture.md``."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import geomix

PACKAGE = ROOT / "src" / "geomix"
CORE = ("core.pooling", "core.planes", "core.lifts", "core.objective", "core.kernel", "model")
# From the bottom up: a room imports from its own row and from rows above it in this list.
LAYERS = (
    ("errors", "arrays"),
    ("table",),
    ("core",),
    ("model",),
    ("explain",),
    ("modelfile", "tablefile"),
    ("training",),
    ("search",),
    ("out_of_core",),
    ("estimator",),
    ("inner",),
    ("semi_supervised", "hierarchy"),
    ("geometry",),
    ("export", "plots"),
    ("report",),
    ("paper", "datasets", "versions", "torch", "dask", "skops"),
    ("demonstration",),
    ("command",),
    ("cli", "__main__"),
)
# Methods that forward to rooms above their own import them when they are called.
FACADES = {"model.py", "estimator.py", "out_of_core/files.py"}
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def imports(path, *, at_the_top=False):
    """Modules of the package that a file imports, as dotted names below ``geomix``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not is_for_types(node)]
    found = set()
    for node in tree.body if at_the_top else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "geomix":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("geomix."):
            below = node.module.removeprefix("geomix.")
            found |= {below, *(f"{below}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("geomix.")]
            found |= {name.removeprefix("geomix.") for name in names}
    return found


def is_for_types(node):
    """``if TYPE_CHECKING:``, which never runs."""
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def modules():
    return [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]


def room(name):
    return name.split("/")[0].split(".")[0]


def layer_of(name):
    places = [at for at, rooms in enumerate(LAYERS) if room(name) in rooms]
    return places[0] if places else None


def test_every_room_has_a_layer():
    rooms = {room(str(path.relative_to(PACKAGE))) for path in modules()}
    assert rooms == {one for layer in LAYERS for one in layer}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    name = str(path.relative_to(PACKAGE))
    ours = layer_of(name)
    used = {one for one in imports(path, at_the_top=name in FACADES) if layer_of(one) is not None}
    upward = {one for one in used if layer_of(one) > ours}
    beside = {one for one in used if layer_of(one) == ours and room(one) != room(name)}
    assert not upward, f"{name} imports from above: {sorted(upward)}"
    assert not beside or len(LAYERS[ours]) > 1


@pytest.mark.parametrize("package", PACKAGES)
def test_the_list_of_rooms_names_every_module(package):
    listed = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text("utf-8")))
    there = {path.stem for path in (PACKAGE / package).glob("*.py")} - {"__init__"}
    assert {name for name in there if not re.search(rf"\b{name}\b", listed)} == set()


def test_the_map_names_every_package_and_nothing_that_is_not_there():
    text = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    there = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert {name for name in named - there if not name.startswith("tests/")} == set()
    assert {name for name in PACKAGES if f"`{name}/" not in text} == set()


@pytest.mark.parametrize(
    ("module", "door"), [("_native", "core/native.py"), ("core.native", "core/kernel.py")]
)
def test_native_code_has_one_door(module, door):
    who = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if module in imports(path)}
    assert who == {Path(door)}


def loaded_by(statement):
    """Which of these libraries a process has imported after the statement."""
    heavy = "{'sklearn', 'scipy', 'pandas', 'pyarrow', 'matplotlib'}"
    found = f"print(*sorted({heavy} & {{name.split('.')[0] for name in sys.modules}}))"
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; {found}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout.split()


def test_the_core_never_imports_scikit_learn():
    names = ", ".join(f"geomix.{name}" for name in CORE)
    assert "sklearn" not in loaded_by(f"import {names}")


def test_loading_a_model_imports_neither_scikit_learn_nor_scipy():
    assert loaded_by("import geomix; geomix.load, geomix.GeometricMixture") == []


def test_dir_shows_the_public_names_only():
    assert dir(geomix) == sorted(geomix.__all__)
    assert all(hasattr(geomix, name) for name in geomix.__all__)
