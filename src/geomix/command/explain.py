"""``geomix explain``: explain a model, or the prediction for one row."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, exit_code_for_bad_values, usage_error

EXAMPLES = """\
  geomix explain m.geomix                               # planes and their columns
  geomix explain m.geomix train.csv --target y          # with usage, purity, errors
  geomix explain m.geomix new.csv --row 17              # why row 17 is predicted as it is
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "explain", "explain a model, or one prediction", EXAMPLES)
    options.add_model(parser)
    parser.add_argument("data", nargs="?", metavar="FILE", help="rows")
    parser.add_argument("--target", metavar="COL", help="column of labels")
    parser.add_argument(
        "--row",
        type=options.row_number,
        metavar="N",
        help="explain this row, counted from 1 without the header",
    )
    parser.add_argument(
        "--label", metavar="CLASS", help="explain this class instead of the predicted one"
    )
    parser.add_argument(
        "--against",
        metavar="CLASS",
        help="compare with this class (default: the most probable other class)",
    )
    options.add_json(parser)
    options.add_read_options(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.command.inputs import model_and_rows, read_one_row

    basis = None
    if args.row is None:
        if args.label is not None or args.against is not None:
            raise usage_error("--label and --against need --row")
        model, rows = model_and_rows(args)
        basis = None if rows is None else rows.basis
        with exit_code_for_bad_values(USAGE):
            given = () if rows is None else (rows.X, rows.y)
            explanation = model.explain_global(*given)
    else:
        if args.data is None:
            raise usage_error("--row needs a file of rows")
        if args.target is not None:
            raise usage_error("--target has no use with --row; remove one of them")
        model = options.load_model(args.model)
        row = read_one_row(args, model)
        with exit_code_for_bad_values(USAGE):
            explanation = model.explain_local(row, label=args.label, against=args.against)
    options.print_result(args, explanation, basis)
    return 0
