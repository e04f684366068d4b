"""``geomix counterfactual``: the smallest change that would have changed an answer. Exit code 1 if
there is none within the changes allowed, or none was found."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, blamed_on, usage

EXAMPLES = """\
  geomix counterfactual m.geomix new.csv --row 17
  geomix counterfactual m.geomix new.csv --row 17 --to granted --immutable age --range income=0:5000
"""


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "counterfactual", "the nearest row with another answer (exit 1: none)", EXAMPLES
    )
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="rows")
    parser.add_argument(
        "--row", type=options.row_number, default=1, metavar="N", help="which row, from 1 (default)"
    )
    parser.add_argument("--to", metavar="CLASS", help="the answer wanted (default: any other)")
    for name, about in {
        "immutable": "may not change",
        "increase-only": "may only grow",
        "decrease-only": "may only shrink",
    }.items():
        parser.add_argument(
            f"--{name}",
            action="append",
            default=[],
            metavar="COL",
            help=f"a column that {about} (repeatable)",
        )
    parser.add_argument(
        "--range",
        action="append",
        default=[],
        metavar="COL=LOW:HIGH",
        help="limits of a number (repeatable)",
    )
    parser.add_argument(
        "--levels",
        action="append",
        default=[],
        metavar="COL=A,B",
        help="allowed levels of a category (repeatable)",
    )
    parser.add_argument(
        "--norm", choices=("l1", "l2"), default="l2", help="of the change (default: l2)"
    )
    parser.add_argument("--sparse", type=int, metavar="N", help="change at most N columns")
    options.add_json(parser)
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    from geomix.command.inputs import one_row

    limits = _ranges(a.range) | _levels(a.levels)
    model = options.loaded(a.model)
    row = one_row(a, model)
    with blamed_on(USAGE):
        found = model.counterfactual(
            row,
            a.to,
            immutable=a.immutable,
            increase_only=a.increase_only,
            decrease_only=a.decrease_only,
            ranges=limits,
            norm=a.norm,
            sparse=a.sparse,
        )
    options.print_facts(a, found)
    return 0 if found.status == "found" else 1


def _ranges(texts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for column, text in options.pairs(texts, "--range").items():
        low, mark, high = text.partition(":")
        try:
            found[column] = (float(low or "-inf"), float(high or "inf"))
        except ValueError:
            mark = ""
        if not mark:
            raise usage(f"got --range {column}={text}; expected COL=LOW:HIGH")
    return found


def _levels(texts: list[str]) -> dict[str, Any]:
    return {name: text.split(",") for name, text in options.pairs(texts, "--levels").items()}
