"""``geomix evaluate``: how good a model's answers are on rows with labels."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import DATA, blamed_on
from geomix.command.messages import note

EXAMPLES = """\
  geomix evaluate m.geomix test.csv --target y
  geomix evaluate m.geomix test.csv --target y --json
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "evaluate", "judge a model by rows with labels", EXAMPLES)
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="rows with labels")
    parser.add_argument("--target", required=True, metavar="COL", help="the column with the labels")
    parser.add_argument("--weight", metavar="COL", help="column of row weights")
    options.add_json(parser)
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    options.need_pyarrow()
    from geomix.command.metrics import file_figures
    from geomix.command.summary import EvaluateFacts

    model = options.loaded(a.model)
    with blamed_on(DATA):
        found = file_figures(model, a.data, a)
    note(a, [*found.alignment.table.notes, *found.alignment.notes])
    options.print_facts(a, EvaluateFacts(found.figures, dict(found.alignment.unknown)))
    return 0
