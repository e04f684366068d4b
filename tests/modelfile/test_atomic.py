"""Atomic writes: at every moment the old file or the new one, and never a stray file for long."""

import errno
import os
import stat
import subprocess
import sys
import time

import pytest
from places import TESTS
from saved_models import case

import geomix
from geomix.modelfile import atomic, saving

N_KILLS = int(os.environ.get("GEOMIX_KILLS", "40"))


def modes(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_what_the_umask_gives(tmp_path):
    old = os.umask(0o027)
    try:
        atomic.write_bytes(tmp_path / "new", b"1")
    finally:
        os.umask(old)
    assert modes(tmp_path / "new") == 0o640


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    target = tmp_path / "old"
    target.write_bytes(b"1")
    for mode in (0o600, 0o664, 0o400):
        target.chmod(mode)
        atomic.write_bytes(target, b"2")
        assert modes(target) == mode
    assert target.read_bytes() == b"2"


def test_what_replaces_a_private_file_is_private_while_it_is_written(tmp_path):
    target = tmp_path / "old"
    target.write_bytes(b"1")
    target.chmod(0o600)
    with atomic.replacing(target):
        (temporary,) = set(tmp_path.iterdir()) - {target}
        assert modes(temporary) == 0o600


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file_and_nothing_else(error, tmp_path):
    target = tmp_path / "old"
    target.write_bytes(b"1")

    def write_half():
        with atomic.replacing(target) as file:
            file.write(b"half of it")
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_bytes() == b"1"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(step, tmp_path, monkeypatch):
    target = tmp_path / "model.geomix"
    case("linear").model.save(target)
    before = target.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        case("spline").model.save(target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


LIMITED = """
import resource, signal, sys
sys.path.insert(0, sys.argv[1])
from saved_models import case
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
model = case("spline").model
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    model.save(sys.argv[2])
except OSError as error:
    print(error.errno)
"""


def test_a_limit_on_file_sizes_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "model.geomix"
    case("linear").model.save(target)
    before = target.read_bytes()
    here = str(TESTS)
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, here, str(target)], capture_output=True, text=True
    )
    assert ran.stdout.strip() == str(errno.EFBIG), ran.stderr
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target, link = folder / "target", tmp_path / "link"
    target.write_bytes(b"1")
    link.symlink_to(target)
    atomic.write_bytes(link, b"2")
    assert link.is_symlink()
    assert target.read_bytes() == b"2"
    assert list(folder.iterdir()) == [target]


def test_only_regular_files_are_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in {tmp_path: IsADirectoryError, pipe: OSError, "/dev/null": OSError}.items():
        with pytest.raises(kind):
            case("linear").model.save(path)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(FileNotFoundError):
        case("linear").model.save(tmp_path / "no folder" / "m.geomix")


def test_temporary_files_an_hour_old_are_removed_and_others_are_not(tmp_path):
    target = tmp_path / "m.geomix"
    stale = tmp_path / ".m.geomix.123.0123456789ab.tmp"
    kept = [
        tmp_path / ".m.geomix.124.0123456789ab.tmp",  # young
        tmp_path / ".other.geomix.123.0123456789ab.tmp",
        tmp_path / ".m.geomix.tmp",
    ]
    for path in (stale, *kept):
        path.write_bytes(b"half")
        if path is not kept[0]:
            os.utime(path, (time.time() - 7200,) * 2)
    atomic.write_bytes(target, b"1")
    assert set(tmp_path.iterdir()) == {target, *kept}


def test_names_as_long_as_they_may_be(tmp_path):
    target = tmp_path / ("é" * 126 + "x")
    atomic.write_bytes(target, b"1")
    atomic.write_bytes(os.fsencode(target), b"2")
    assert target.read_bytes() == b"2"
    assert list(tmp_path.iterdir()) == [target]


# One process forks a child for every kill; the child saves two models by turns, on and on.
KILLING = """
import os, random, signal, sys, time
sys.path.insert(0, sys.argv[1])
from saved_models import case
from geomix.modelfile import saving
target, n_kills = sys.argv[2], int(sys.argv[3])
models = [case("linear").model, case("spline pairs").model]
contents = {saving.to_bytes(model) for model in models}
models[0].save(target)
sync = os.fsync
def slow_sync(descriptor):  # a slow disk, so that many kills fall between write and rename
    sync(descriptor)
    time.sleep(0.003)
os.fsync = slow_sync
random.seed(0)
broken = 0
for _ in range(n_kills):
    child = os.fork()
    if child == 0:
        while True:
            for model in models:
                model.save(target)
    time.sleep(random.uniform(0.001, 0.03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with open(target, "rb") as file:
        broken += file.read() not in contents
print(broken)
"""


def test_kill_9_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path):
    target = tmp_path / "m.geomix"
    here = str(TESTS)
    ran = subprocess.run(
        [sys.executable, "-c", KILLING, here, str(target), str(N_KILLS)],
        capture_output=True,
        text=True,
    )
    assert ran.stdout.strip() == "0", ran.stderr
    assert geomix.load(target).n_features in (3, 4)
    # Kills that fell between the first byte and the rename left their temporary file.
    left = [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
    print(f"{N_KILLS} kills, {len(left)} of them while a file was being written, 0 broken files")
    assert left, "no kill fell into a write: the test proves nothing"
    content = {saving.to_bytes(case(name).model) for name in ("linear", "spline pairs")}
    assert target.read_bytes() in content


@pytest.mark.parametrize("moment", ["fdopen", "fsync", "replace"])
def test_ctrl_c_at_any_moment_leaves_no_temporary_file(tmp_path, monkeypatch, moment):
    target = tmp_path / "model"
    atomic.write_bytes(target, b"old")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, moment, interrupted)
    with pytest.raises(KeyboardInterrupt):
        atomic.write_bytes(target, b"new")
    monkeypatch.undo()
    assert [one.name for one in tmp_path.iterdir()] == ["model"]
    assert target.read_bytes() == b"old"
