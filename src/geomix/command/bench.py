"""``geomix bench``: the benchmarks of a checkout, which an installed package does not have."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from geomix.command import options
from geomix.command.exit_codes import usage

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = {
    "paper": "paper_sets.py",
    "suite": "suite.py",
    "speed": "speed.py",
    "command-line": "command_line.py",
}
EXAMPLES = """\
  geomix bench paper --data iris wine
  geomix bench suite --quick
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "bench", "run a benchmark of a checkout", EXAMPLES)
    parser.add_argument("name", choices=tuple(SCRIPTS), help="which one")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="its own options")
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    import subprocess

    script = folder() / SCRIPTS[a.name]
    if not script.is_file():
        raise usage(f"{script.parent} has no {script.name}")
    return subprocess.run([sys.executable, str(script), *a.rest], check=False).returncode


def folder() -> Path:
    """The folder ``benchmarks`` of the checkout that this package, or the shell, is in."""
    from pathlib import Path

    import geomix

    for root in (Path(geomix.__file__).resolve().parents[2], Path.cwd()):
        if (root / "benchmarks" / SCRIPTS["paper"]).is_file():
            return root / "benchmarks"
    raise usage("the benchmarks are in the source repository: run this inside a clone of it")
