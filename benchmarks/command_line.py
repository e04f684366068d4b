"""The command line on a large CSV: seconds, MB per second, peak memory; and the start of help.

    python benchmarks/command_line.py                         # 1 GB, results/command_line.md
    python benchmarks/command_line.py --megabytes 100 --folder /tmp/scratch

Every line is a process of its own; its peak memory is VmHWM in /proc. The
file has twelve numbers, two categories, missing cells, an identifier and a label. Reading alone,
by us and by pyarrow, is measured on the same file in the same run.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from geomix.command.fit_streaming import MOST_CELLS

HERE = Path(__file__).parent
ROWS_PER_PART = 200_000
N_NUMBERS = 12
HELP_STARTS = 15
GEOMIX = [sys.executable, "-m", "geomix"]

# How long and how much a child takes; VmHWM is read when it is done but has not ended.
READ_OURS = """
import sys
from geomix.tablefile import open_table
table = open_table(sys.argv[1], rereadable=False)
kinds = {name: "number" if name.startswith("x") else "text" for name in table.names}
print(sum(block.n_rows for block in table.blocks(kinds)))
"""
READ_PYARROW = """
import sys
from pyarrow import csv
text = dict.fromkeys(["id", "city", "kind", "y"], "string")
options = csv.ConvertOptions(column_types=text)
print(sum(batch.num_rows for batch in csv.open_csv(sys.argv[1], convert_options=options)))
"""


@dataclass(frozen=True)
class Line:
    """A command, its seconds on the wall and of the processor, the input's megabytes and the peak
    memory in megabytes."""

    name: str
    seconds: float
    processor: float
    megabytes: float
    peak: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1000, help="of the CSV (default: 1000)")
    parser.add_argument("--folder", type=Path, help="for the files, which are removed at the end")
    parser.add_argument("--output", type=Path, default=HERE / "results", metavar="FOLDER")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        report = measured(Path(folder), arguments.megabytes)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "command_line.md").write_text(report)
    print(report)


def measured(folder: Path, megabytes: int) -> str:
    starts = [seconds_of([*GEOMIX, "--help"]) for _ in range(HELP_STARTS)]
    bare = [seconds_of([sys.executable, "-c", "pass"]) for _ in range(HELP_STARTS)]
    data, model = folder / "rows.csv", folder / "m.geomix"
    n_rows = write_rows(data, megabytes * 10**6)
    size = data.stat().st_size / 1e6
    fit = [*GEOMIX, "fit", data, "--target", "y", "--id", "id", "-o", model, "--force", "--quiet"]
    given = ["lift=spline", "n_planes=1", "l2=1e-4", "max_iter=50"]
    simple = [*fit, *(word for one in given for word in ("--set", one))]
    # Above 30 million cells a fit streams by itself; a smaller file needs --stream.
    streamed = [] if n_rows * (N_NUMBERS + 3) > MOST_CELLS else ["--stream"]
    predict = [*GEOMIX, "predict", model, data, "--id", "id", "--force", "-o"]
    runs = {
        "read with pyarrow alone, streaming": [sys.executable, "-c", READ_PYARROW, data],
        "read with `geomix.tablefile`": [sys.executable, "-c", READ_OURS, data],
        "`geomix fit`, all parameters chosen": [*fit, *streamed],
        "`geomix fit` (spline, one plane per class, 50 iterations)": [*simple, *streamed],
        "`geomix fit --test 0.2` (the same)": [*simple, *streamed, "--test", "0.2"],
        "`geomix fit --no-stream` (the same)": [*simple, "--no-stream"],
        "`geomix predict`": [*predict, folder / "out.csv"],
        "`geomix predict --proba`": [*predict, folder / "out.csv", "--proba"],
        "`geomix predict -o out.parquet`": [*predict, folder / "out.parquet"],
        **explaining(folder, model, data),
    }
    lines = []
    for name, command in runs.items():
        seconds, processor, peak = watched(command)
        lines.append(Line(name, seconds, processor, size, peak))
        print(lines[-1], file=sys.stderr, flush=True)
    return text_of(lines, n_rows, size, starts, bare)


def explaining(folder: Path, model: Path, data: Path) -> dict[str, list[object]]:
    """The commands that measure and explain a model on the rows of the file."""
    labelled = [model, data, "--target", "y"]
    return {
        "`geomix evaluate`": [*GEOMIX, "evaluate", *labelled],
        "`geomix drift`": [*GEOMIX, "drift", model, data],
        "`geomix drift --reference` (the same file)": [
            *GEOMIX, "drift", model, data, "--reference", data
        ],
        "`geomix explain`": [*GEOMIX, "explain", *labelled],
        "`geomix rules`": [*GEOMIX, "rules", *labelled],
        "`geomix report`": [*GEOMIX, "report", *labelled, "-o", folder / "report.html"],
    }  # fmt: skip


def write_rows(path: Path, n_bytes: int) -> int:
    """Rows until the file is large enough; how many there are."""
    rng = np.random.default_rng(0)
    n_rows = 0
    with open(path, "wb") as file:
        while file.tell() < n_bytes:
            csv.write_csv(part_of(rng, n_rows), file, csv.WriteOptions(include_header=n_rows == 0))
            n_rows += ROWS_PER_PART
    return n_rows


def part_of(rng: np.random.Generator, first: int) -> pa.Table:
    X = rng.normal(size=(ROWS_PER_PART, N_NUMBERS)).round(4)
    city = rng.integers(0, 40, ROWS_PER_PART)
    kind = rng.integers(0, 5, ROWS_PER_PART)
    score = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + (city % 3) - 0.5 * kind + rng.logistic(size=len(X))
    hidden = rng.random(X.shape) < 0.02
    columns = {"id": pa.array([f"{first + i:09d}" for i in range(len(X))])}
    columns |= {f"x{j}": pa.array(X[:, j], mask=hidden[:, j]) for j in range(N_NUMBERS)}
    columns["city"] = pa.array([f"city {code}" for code in range(40)]).take(pa.array(city))
    columns["kind"] = pa.array(list("abcde")).take(pa.array(kind))
    columns["y"] = pa.array(["no", "yes"]).take(pa.array((score > 0).astype(int)))
    return pa.table(columns)


def seconds_of(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def watched(command: list[object]) -> tuple[float, float, float]:
    """Seconds on the wall and of the processor, and peak memory in megabytes of a process."""
    started, before = time.perf_counter(), children_seconds()
    process = subprocess.Popen([os.fspath(one) for one in command], stdout=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, high_water_mark(process.pid))
        time.sleep(0.02)
    if process.returncode and "drift" not in command:  # whose exit code 1 means drift
        sys.exit(f"{command} ended with {process.returncode}")
    return time.perf_counter() - started, children_seconds() - before, peak


def children_seconds() -> float:
    """Processor seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def high_water_mark(pid: int) -> float:
    """VmHWM in megabytes; 0 once the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = [line.split() for line in status.splitlines() if line.startswith("VmHWM")]
    return int(found[0][1]) * 1024 / 1e6 if found else 0.0


def text_of(
    lines: list[Line], n_rows: int, size: float, starts: list[float], bare: list[float]
) -> str:
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    rows = [
        f"| {one.name} | {one.seconds:.1f} | {one.processor:.1f} | "
        f"{one.megabytes / one.seconds:.0f} | {one.peak:.0f} |"
        for one in lines
    ]
    return "\n".join(
        [
            "# The command line on a large CSV",
            "",
            f"Made by `python benchmarks/command_line.py`: {n_rows} rows, {size:.0f} MB of CSV "
            f"({N_NUMBERS} numbers, 2 categories, an identifier, a label). {os.cpu_count()} cores, "
            f"load {load} at the end, Python {platform.python_version()}, pyarrow "
            f"{pa.__version__}.",
            "",
            "| command | seconds | of the processor | MB of CSV per second | peak memory, MB |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "",
            f"Start of `geomix --help`: median {statistics.median(starts):.3f} s, fastest "
            f"{min(starts):.3f} s of {len(starts)} (an empty Python: {statistics.median(bare):.3f} "
            f"s and {min(bare):.3f} s).",
            "",
        ]
    )


if __name__ == "__main__":
    main()
