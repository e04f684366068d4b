"""``geomix report``: an HTML report of a model on test rows."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import DATA, exit_code_for_bad_values, usage_error
from geomix.command.messages import note

EXAMPLES = """\
  geomix report m.geomix test.csv --target y -o report.html
  geomix report m.geomix test.csv --target y -o report.html --new this-week.csv
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "report", "write an HTML report of a model", EXAMPLES)
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="labelled rows, preferably test rows")
    parser.add_argument("--target", required=True, metavar="COL", help="column of labels")
    parser.add_argument("-o", "--output", required=True, metavar="HTML", help="the file to write")
    parser.add_argument(
        "--new", metavar="FILE", help="new rows, to be compared with FILE for drift"
    )
    parser.add_argument("--title", metavar="TEXT", help="the report's title")
    options.add_read_options(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.command.inputs import read_rows
    from geomix.report import report

    if args.output == "-":
        raise usage_error("-o must be a file; a report cannot be written to standard output")
    options.check_one_standard_input(args.data, args.new, "the test rows and the new rows")
    options.check_output_is_no_input(args.output, args.data, args.new, args.model)
    options.check_writable(args.output, must_be_file=True)
    model = options.load_model(args.model)
    rows = read_rows(args, model, args.data, args.target)
    new = None if args.new is None else read_rows(args, model, args.new)
    note(args, [f"{args.data}: {rows.basis}"] if rows.basis else [])
    note(args, [f"{args.new}: {new.basis}"] if new is not None and new.basis else [])
    with exit_code_for_bad_values(DATA):
        report(
            model,
            rows.X,
            rows.y,
            args.output,
            X_new=None if new is None else new.X,
            title=args.title,
            n_total=rows.n_total,
        )
    return 0
