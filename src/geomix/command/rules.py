"""``geomix rules``: a model's regions as inequalities or boxes."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, blamed_on

EXAMPLES = """\
  geomix rules m.geomix
  geomix rules m.geomix train.csv --target y --class granted --max-terms 3
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "rules", "the model's regions as rules", EXAMPLES)
    options.add_model(parser)
    parser.add_argument(
        "data", nargs="?", metavar="FILE", help="rows; the rules of curves need them"
    )
    parser.add_argument("--target", metavar="COL", help="the column with the labels")
    parser.add_argument("--class", dest="class_", metavar="CLASS", help="of this class alone")
    parser.add_argument("--max-terms", type=int, metavar="N", help="most terms of a rule")
    parser.add_argument(
        "--digits", type=int, default=3, metavar="N", help="significant ones (default: 3)"
    )
    options.add_json(parser)
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    from geomix.command.inputs import model_and_rows

    model, X, y = model_and_rows(a)
    with blamed_on(USAGE):
        found = model.rules(X, y, class_=a.class_, max_terms=a.max_terms, digits=a.digits)
    options.print_facts(a, found)
    return 0
