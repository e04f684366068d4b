"""``geomix counterfactual``: the smallest change of a row that changes its predicted class.

Exit code 1 if no such change is allowed, or if none was found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from geomix.command import options
from geomix.command.exit_codes import USAGE, exit_code_for_bad_values, usage_error

EXAMPLES = """\
  geomix counterfactual m.geomix new.csv --row 17
  geomix counterfactual m.geomix new.csv --row 17 --to granted --immutable age --range income=0:5000
"""


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands,
        "counterfactual",
        "find a near row that is predicted as another class (exit 1: none found)",
        EXAMPLES,
    )
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="rows")
    parser.add_argument(
        "--row",
        type=options.row_number,
        default=1,
        metavar="N",
        help="the row to change, counted from 1 (default: 1)",
    )
    parser.add_argument("--to", metavar="CLASS", help="the wanted class (default: any other)")
    for name, about in {
        "immutable": "must not change",
        "increase-only": "may only increase",
        "decrease-only": "may only decrease",
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
        help="limits of a numeric column (repeatable)",
    )
    parser.add_argument(
        "--levels",
        action="append",
        default=[],
        metavar="COL=A,B",
        help="allowed levels of a categorical column (repeatable)",
    )
    parser.add_argument(
        "--norm",
        choices=("l1", "l2"),
        default="l2",
        help="how the size of the change is measured (default: l2)",
    )
    parser.add_argument(
        "--sparse",
        type=int,
        metavar="N",
        help="change at most N columns (default: 3, or as many as a short distance needs)",
    )
    parser.add_argument(
        "--probability", type=float, metavar="P", help="least probability of the wanted class"
    )
    options.add_json(parser)
    options.add_read_options(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.command.inputs import read_one_row

    ranges = {name: _range(name, text) for name, text in _pairs(args.range, "--range")}
    levels = dict(_pairs(args.levels, "--levels"))
    model = options.load_model(args.model)
    with exit_code_for_bad_values(USAGE):
        limits = _checked_ranges(model, ranges) | _levels(model, levels)
    row = read_one_row(args, model)
    with exit_code_for_bad_values(USAGE):
        found = model.counterfactual(
            row,
            args.to,
            immutable=args.immutable,
            increase_only=args.increase_only,
            decrease_only=args.decrease_only,
            ranges=limits,
            norm=args.norm,
            sparse="auto" if args.sparse is None else args.sparse,
            probability=args.probability,
        )
    options.print_result(args, found)
    return 0 if found.status == "found" else 1


def _pairs(texts: list[str], option: str) -> Iterable[tuple[str, str]]:
    return options.key_value_pairs(texts, option).items()


def _range(name: str, text: str) -> tuple[float, float]:
    low, mark, high = text.partition(":")
    try:
        limits = float(low or "-inf"), float(high or "inf")
    except ValueError:
        mark = ""
    if not mark or any(map(math.isnan, limits)):
        raise usage_error(f"got --range {name}={text}; expected COL=LOW:HIGH, two numbers")
    return limits


def _checked_ranges(model: Any, ranges: dict[str, Any]) -> dict[str, Any]:
    for name in ranges:
        if _column(model, name).kind != "number":
            raise usage_error(
                f"the column {name!r} is a category, which has no range; use --levels {name}=A,B"
            )
    return ranges


def _levels(model: Any, texts: dict[str, str]) -> dict[str, Any]:
    """The levels that texts name: numbers or booleans, if the levels are such."""
    from geomix.tablefile.alignment import level_of

    found = {}
    for name, text in texts.items():
        column = _column(model, name)
        if column.kind == "number":
            raise usage_error(
                f"the column {name!r} holds numbers, which are no levels; use --range "
                f"{name}=LOW:HIGH"
            )
        found[name] = [level_of(column, one) for one in text.split(",")]
    return found


def _column(model: Any, name: str) -> Any:
    from geomix.explain.cells import column_place, model_schema

    return model_schema(model).columns[column_place(model, name)]
