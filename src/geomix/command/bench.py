"""``geomix bench``: run a benchmark of the source repository."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from geomix.command import options
from geomix.command.exit_codes import usage_error

if TYPE_CHECKING:
    from pathlib import Path


class Benchmark(NamedTuple):
    """A script, or a package that Python can run, in the folder ``benchmarks``."""

    script: str
    about: str


BENCHMARKS = {
    "paper": Benchmark("paper", "the paper's tables, ablations and figures"),
    "suite": Benchmark("suite.py", "a folder of real tables, geomix beside ten peers"),
    "speed": Benchmark("speed.py", "one row, batches, fits and memory, beside peers"),
    "scale": Benchmark("scale.py", "files larger than memory and a Dask cluster"),
    "reading": Benchmark("reading.py", "counterfactuals, certificates and contributions"),
    "report": Benchmark("report.py", "time and size of a report"),
    "command-line": Benchmark("command_line.py", "fit and predict on a CSV of 1 GB"),
}
EXAMPLES = """\
  geomix bench --list
  geomix bench paper --only iris wine
  geomix bench suite --quick
"""


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "bench", "run a benchmark of the source repository", EXAMPLES
    )
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    parser.add_argument("name", nargs="?", choices=tuple(BENCHMARKS), help="the benchmark")
    parser.add_argument(
        "rest", nargs=argparse.REMAINDER, metavar="...", help="options of the benchmark"
    )
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    import subprocess

    if args.list:
        return print_list()
    if args.name is None:
        raise usage_error("name a benchmark: " + ", ".join(BENCHMARKS))
    script = script_of(args.name)
    return subprocess.run([sys.executable, str(script), *args.rest], check=False).returncode


def print_list() -> int:
    width = max(map(len, BENCHMARKS))
    for name, one in BENCHMARKS.items():
        print(f"{name:<{width}}  {one.about}")
    return 0


def script_of(name: str) -> Path:
    """The benchmark in the clone that holds this package, or in the current folder."""
    from pathlib import Path

    import geomix

    for root in (Path(geomix.__file__).resolve().parents[2], Path.cwd()):
        script = root / "benchmarks" / BENCHMARKS[name].script
        if script.exists():
            return script
    raise usage_error("the benchmarks are in the source repository: run this inside a clone of it")
