"""``geomix rules``: rules that describe the regions of a model."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, exit_code_for_bad_values

EXAMPLES = """\
  geomix rules m.geomix
  geomix rules m.geomix train.csv --target y --class granted --max-terms 3
"""


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "rules", "print rules that describe the regions of a model", EXAMPLES
    )
    options.add_model(parser)
    parser.add_argument(
        "data", nargs="?", metavar="FILE", help="rows; needed for a model with curves"
    )
    parser.add_argument("--target", metavar="COL", help="column of labels")
    parser.add_argument("--class", dest="class_", metavar="CLASS", help="only rules of this class")
    parser.add_argument(
        "--max-terms", type=int, metavar="N", help="largest number of terms in a rule"
    )
    parser.add_argument(
        "--digits", type=int, default=3, metavar="N", help="significant digits (default: 3)"
    )
    options.add_json(parser)
    options.add_read_options(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.command.inputs import model_and_rows

    model, X, y = model_and_rows(args)
    with exit_code_for_bad_values(USAGE):
        found = model.rules(X, y, class_=args.class_, max_terms=args.max_terms, digits=args.digits)
    options.print_result(args, found)
    return 0
