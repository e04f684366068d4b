"""``geomix explain``: what a model does, or why it answered a row as it did."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, blamed_on, usage

EXAMPLES = """\
  geomix explain m.geomix                               # planes and their columns
  geomix explain m.geomix train.csv --target y          # with usage, purity, errors
  geomix explain m.geomix new.csv --row 17              # why row 17 was answered as it was
"""


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "explain", "explain a model, or one of its answers", EXAMPLES
    )
    options.add_model(parser)
    parser.add_argument("data", nargs="?", metavar="FILE", help="rows")
    parser.add_argument("--target", metavar="COL", help="the column with the labels")
    parser.add_argument(
        "--row",
        type=options.row_number,
        metavar="N",
        help="explain this row, counted from 1 without the header",
    )
    parser.add_argument(
        "--label", metavar="CLASS", help="explain this class rather than the answer"
    )
    parser.add_argument("--against", metavar="CLASS", help="hold it against this class")
    options.add_json(parser)
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    from geomix.command.inputs import model_and_rows, one_row

    if a.row is None:
        if a.label is not None or a.against is not None:
            raise usage("--label and --against need --row")
        model, X, y = model_and_rows(a)
        with blamed_on(USAGE):
            told = model.explain_global(X, y)
    else:
        if a.data is None:
            raise usage("--row needs a file of rows")
        model = options.loaded(a.model)
        row = one_row(a, model)
        with blamed_on(USAGE):
            told = model.explain_local(row, label=a.label, against=a.against)
    options.print_facts(a, told)
    return 0
