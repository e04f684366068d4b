"""``geomix demo``: a first look, on data that come with scikit-learn."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, Failure

EXAMPLES = """\
  geomix demo
  geomix demo --output /tmp/pictures --seed 1
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "demo", "a first look: a report and pictures", EXAMPLES)
    parser.add_argument(
        "--output", default="demo", metavar="FOLDER", help="for the pictures (default: demo)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of splits and training (default: 0)")
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    try:
        from geomix import demonstration
    except ImportError as error:
        raise Failure(
            USAGE, f"the demo needs matplotlib: pip install 'geomix[plots]' ({error})"
        ) from error
    demonstration.run(a.output, a.seed)
    return 0
