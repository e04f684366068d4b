"""``geomix demo``: a demonstration on data sets of scikit-learn."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, CommandError

EXAMPLES = """\
  geomix demo
  geomix demo --output /tmp/pictures --seed 1
"""


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "demo", "show results on two data sets and draw plots", EXAMPLES
    )
    parser.add_argument(
        "--output",
        default="demo",
        metavar="FOLDER",
        help="where to write the plots (default: demo)",
    )
    parser.add_argument("--seed", type=options.seed, default=0, help="random seed (default: 0)")
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    try:
        from geomix import demonstration
    except ImportError as error:
        raise CommandError(
            USAGE, f"the demo needs matplotlib: pip install 'geomix[plots]' ({error})"
        ) from error
    demonstration.run(args.output, args.seed)
    return 0
