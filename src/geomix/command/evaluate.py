"""``geomix evaluate``: metrics of a model on labelled rows."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import DATA, exit_code_for_bad_values
from geomix.command.messages import note, warn_of_unknown

EXAMPLES = """\
  geomix evaluate m.geomix test.csv --target y
  geomix evaluate m.geomix test.csv --target y --json
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "evaluate", "compute metrics on labelled rows", EXAMPLES)
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="labelled rows")
    parser.add_argument("--target", required=True, metavar="COL", help="column of labels")
    parser.add_argument("--weight", metavar="COL", help="column of row weights")
    options.add_json(parser)
    options.add_read_options(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    options.need_pyarrow()
    from geomix.command.metrics import file_metrics
    from geomix.command.summary import EvaluateFacts

    options.check_two_roles(args.target, args.weight)
    model = options.load_model(args.model)
    with exit_code_for_bad_values(DATA):
        found = file_metrics(model, args.data, args)
    note(args, [*found.alignment.table.notes, *found.alignment.notes])
    warn_of_unknown(found.alignment)
    options.print_result(args, EvaluateFacts(found.metrics, dict(found.alignment.unknown)))
    return 0
