"""``geomix report``: one HTML file that tells a model whole."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import DATA, blamed_on

EXAMPLES = """\
  geomix report m.geomix test.csv --target y -o report.html
  geomix report m.geomix test.csv --target y -o report.html --new this-week.csv
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "report", "write an HTML report of a model", EXAMPLES)
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="rows with labels, best those of a test")
    parser.add_argument("--target", required=True, metavar="COL", help="the column with the labels")
    parser.add_argument("-o", "--output", required=True, metavar="HTML", help="the file to write")
    parser.add_argument("--new", metavar="FILE", help="new rows, to be looked at for drift")
    parser.add_argument("--title", metavar="TEXT", help="the report's title")
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    from geomix.command.inputs import rows_of

    options.refuse_same_file(a.output, a.data, a.new, a.model)
    options.check_folder(a.output)
    model = options.loaded(a.model)
    X, y = rows_of(a, model, a.data, a.target)
    X_new = None if a.new is None else rows_of(a, model, a.new)[0]
    with blamed_on(DATA):
        model.report(X, y, a.output, X_new=X_new, title=a.title)
    return 0
