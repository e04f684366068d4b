"""``geomix rules``: few short rules that cover most rows of a file."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, exit_code_for_bad_values

EXAMPLES = """\
  geomix rules m.geomix test.csv --target y
  geomix rules m.geomix test.csv --class granted --purity 0.95 --max-terms 2
"""


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "rules", "print short rules that cover most rows", EXAMPLES
    )
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="rows to find rules in")
    parser.add_argument("--target", metavar="COL", help="column of labels")
    parser.add_argument("--class", dest="class_", metavar="CLASS", help="only rules of this class")
    parser.add_argument(
        "--purity",
        type=float,
        default=0.9,
        metavar="SHARE",
        help="least share of a rule's rows that belong to its class (default: 0.9)",
    )
    parser.add_argument(
        "--max-terms", type=int, default=3, metavar="N", help="most conditions (default: 3)"
    )
    parser.add_argument(
        "--digits", type=int, default=3, metavar="N", help="significant digits (default: 3)"
    )
    options.add_json(parser)
    options.add_read_options(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.command.inputs import model_and_rows

    model, rows = model_and_rows(args)
    with exit_code_for_bad_values(USAGE):
        found = model.rules(
            rows.X,
            rows.y,
            class_=args.class_,
            purity=args.purity,
            max_terms=args.max_terms,
            digits=args.digits,
        )
    options.print_result(args, found, rows.basis)
    return 0
