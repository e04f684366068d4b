"""The command as a process: exit codes, signals, pipes, closed and full outputs."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from cli_files import QUICK, csv_text, flowers, written
from patience import PATIENCE, eventually, has_worked

COMMAND = [sys.executable, "-m", "geomix"]


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("process")
    written(folder / "rows.csv", csv_text(*flowers()))
    ran = shell("fit", "rows.csv", "--target", "kind", "--id", "id", "-o", "m.geomix", *QUICK,
                cwd=folder)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture(scope="session")
def by_name(trained):
    """The answers to the rows, read from the file of their name."""
    return shell("predict", "m.geomix", "rows.csv", cwd=trained).stdout


def shell(*argv, **more):
    more = {"capture_output": True, "timeout": PATIENCE, "check": False, **more}
    return subprocess.run([*COMMAND, *map(str, argv)], **more)


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from geomix.cli import main; code = main(['fit', '--help']); "
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'tqdm'} & set(sys.modules); "
        "sys.exit(code or bool(heavy))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "--target" in ran.stdout


def test_standard_input_is_a_file_like_others(trained, by_name, tmp_path):
    content = (trained / "rows.csv").read_bytes()
    assert shell("predict", "m.geomix", "-", cwd=trained, input=content).stdout == by_name
    ran = shell("fit", "-", "--target", "kind", "--id", "id", "-o", tmp_path / "m.geomix", *QUICK,
                input=content)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "m.geomix").read_bytes() == (trained / "m.geomix").read_bytes()


def test_parquet_comes_through_a_pipe_too(trained, by_name, tmp_path):
    import pandas as pd

    frame = pd.read_csv(trained / "rows.csv", dtype={"id": str})
    frame.to_parquet(tmp_path / "rows.parquet")
    content = (tmp_path / "rows.parquet").read_bytes()
    ran = shell("predict", "m.geomix", "-", cwd=trained, input=content)
    assert ran.stdout == by_name, ran.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_named_pipes_odd_names_and_dashes_are_files(trained, by_name, tmp_path):
    content = (trained / "rows.csv").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(content))
    feeder.start()
    assert shell("predict", "m.geomix", tmp_path / "pipe", cwd=trained).stdout == by_name
    feeder.join()
    odd = os.fsencode(tmp_path) + b"/-x \xff.csv"
    with open(odd, "wb") as file:
        file.write(content)
    model = os.fsencode(trained / "m.geomix")
    argv = [*COMMAND, "predict", model, "--", b"-x \xff.csv"]
    ran = subprocess.run(argv, capture_output=True, cwd=tmp_path, check=False)
    assert ran.stdout == by_name, ran.stderr
    gone = subprocess.run(
        [*COMMAND, "predict", model, b"\xfe.csv"], capture_output=True, check=False
    )
    assert gone.returncode == 5
    assert b"No such file" in gone.stderr


def test_a_reader_that_leaves_is_no_error(trained, tmp_path):
    names, rows = flowers()
    big = written(tmp_path / "big.csv", csv_text(names, rows * 400))
    process = subprocess.Popen(
        [*COMMAND, "predict", str(trained / "m.geomix"), str(big)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=PATIENCE) == 141
    process.stderr.close()
    assert errors == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_output_is_exit_code_5(trained):
    with open("/dev/full", "wb") as full:
        ran = shell("predict", "m.geomix", "rows.csv", cwd=trained, capture_output=False,
                    stdout=full, stderr=subprocess.PIPE)  # fmt: skip
        buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # argparse forgives a failed write
        helped = shell("--help", capture_output=False, stdout=full, stderr=subprocess.PIPE,
                       env=buffered)  # fmt: skip
    assert ran.returncode == 5
    assert ran.stderr == b"error: no space left on the device\n"
    assert helped.returncode == 5


def test_devices_are_written_to_and_stay(trained):
    assert shell("predict", "m.geomix", "rows.csv", "-o", os.devnull, cwd=trained).returncode == 0
    assert not os.path.isfile(os.devnull)


@pytest.mark.skipif(os.name != "posix", reason="a shell's way of closing outputs")
def test_closed_outputs_are_no_crash(trained):
    for closing, code in ((">&-", 5), ("2>&-", 0)):
        line = f"{sys.executable} -m geomix predict m.geomix rows.csv {closing}"
        ran = subprocess.run(["sh", "-c", line], cwd=trained, capture_output=True, check=False)
        assert ran.returncode == code, ran.stderr
        assert b"Traceback" not in ran.stderr


def test_terminals_of_few_letters_show_escapes(trained, tmp_path):
    names, rows = flowers()
    path = written(tmp_path / "rows.csv", csv_text(names, rows).replace("setosa", "sétosa"))
    ran = shell("fit", path, "--target", "kind", "--id", "id", "-o", tmp_path / "m.geomix", *QUICK,
                env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"})  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert rb"s\xe9tosa" in ran.stdout


def test_decimal_commas_of_a_locale_change_nothing(trained, by_name):
    env = {**os.environ, "LC_ALL": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"}
    assert shell("predict", "m.geomix", "rows.csv", cwd=trained, env=env).stdout == by_name


@pytest.mark.skipif(os.name != "posix", reason="a terminal of POSIX")
def test_progress_is_for_terminals(trained, by_name):
    import fcntl
    import pty
    import struct
    import termios

    master, terminal = pty.openpty()
    # A window has a size; without one nothing is drawn.
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    ran = shell("predict", "m.geomix", "rows.csv", cwd=trained, capture_output=False,
                stdout=subprocess.PIPE, stderr=terminal)  # fmt: skip
    os.close(terminal)
    shown = os.read(master, 10_000)
    os.close(master)
    assert b"geomix predict: 150" in shown
    assert ran.returncode == 0
    assert ran.stdout == by_name


def test_no_thread_is_left_when_the_work_is_done(trained):
    """A thread that is still busy while the interpreter ends can abort the process."""
    code = (
        "import sys, threading; from geomix.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(code or threading.enumerate() != [threading.main_thread()])"
    )
    for argv in (
        ["predict", "m.geomix", "rows.csv"],
        ["fit", "rows.csv", "--target", "kind", "-o", "other.geomix", "--stream", *QUICK],
    ):
        ran = subprocess.run([sys.executable, "-c", code, *argv], cwd=trained,
                             capture_output=True, check=False)  # fmt: skip
        assert ran.returncode == 0, ran.stderr


# --- signals ---


@pytest.fixture(scope="session")
def long_work(tmp_path_factory):
    """A folder with rows that take far longer to learn than any test waits."""
    folder = tmp_path_factory.mktemp("signals")
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(2000, 20)).round(3).astype(str).tolist()
    rows = [[*row, "pq"[label]] for row, label in zip(cells, rng.integers(0, 2, 2000), strict=True)]
    names = [*(f"x{j}" for j in range(20)), "y"]
    written(folder / "rows.csv", csv_text(names, rows, delimiter=";"))
    return folder


ENDLESS = ["lift=linear", "n_planes=4", "l2=1e-7", "solver=adam", "max_iter=10000000"]
ENDLESS += ["early_stopping=off", "calibrate=false"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_during_fit_ends_it_and_leaves_nothing(long_work, request, number, code, said):
    endless = [word for one in ENDLESS for word in ("--set", one)]
    process = subprocess.Popen(
        [*COMMAND, "fit", "rows.csv", "--target", "y", "-o", "m.geomix", *endless],
        cwd=long_work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    request.addfinalizer(process.kill)  # it is endless, and must not outlive a failure
    assert "delimiter is ';'" in process.stderr.readline()  # the rows are read, the fit begins
    assert has_worked(process, 0.5)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert err == f"error: {said}\n"
    assert out == ""
    assert os.listdir(long_work) == ["rows.csv"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_signal_during_predict_leaves_no_output(trained, tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "predict", str(trained / "m.geomix"), "-", "-o", str(tmp_path / "out.csv")],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    names, rows = flowers()
    process.stdin.write(csv_text(names, rows * 2000).encode())  # more than is read at a time
    process.stdin.flush()  # and then nothing: it waits for more
    assert eventually(lambda: any(name.endswith(".tmp") for name in os.listdir(tmp_path)))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, err
    assert os.listdir(tmp_path) == []
