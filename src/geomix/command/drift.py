"""``geomix drift``: whether new rows fall to the model's planes as the old ones did. Exit code 1
says that they do not."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import DATA, blamed_on, usage

EXAMPLES = """\
  geomix drift m.geomix this-week.csv || mail -s drift me@example.org
  geomix drift m.geomix this-week.csv --reference last-year.csv --level 0.001 --json
"""


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "drift", "compare new rows with old ones (exit 1: drift)", EXAMPLES
    )
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="new rows")
    parser.add_argument(
        "--reference", metavar="FILE", help="old rows (default: those that geomix fit learnt from)"
    )
    parser.add_argument(
        "--level",
        type=float,
        default=0.01,
        metavar="P",
        help="drift is a p-value below this (default: 0.01)",
    )
    parser.add_argument(
        "--least-change",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="and a plane's share of rows that changes by this (default: 0)",
    )
    options.add_json(parser)
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    from geomix.command.inputs import rows_of
    from geomix.explain.drift import cell_counts, compare_counts

    model = options.loaded(a.model)
    X_new, _ = rows_of(a, model, a.data)
    reference = _reference(a, model)
    with blamed_on(DATA):
        found = compare_counts(model, reference, cell_counts(model, X_new))
    options.print_facts(a, found)
    largest = max(abs(one.change) for one in found.planes)
    return int(found.p_value < a.level and largest >= a.least_change)


def _reference(a: Any, model: Any) -> Any:
    """Counts of the rows of --reference, or those that the model remembers."""
    import numpy as np

    from geomix.command.inputs import rows_of
    from geomix.explain.drift import CellCounts, cell_counts

    if a.reference is not None:
        return cell_counts(model, rows_of(a, model, a.reference)[0])
    facts = model.training or {}
    counts = facts.get("plane_rows")
    if not isinstance(counts, list) or len(counts) != model.planes.n_planes or model.edits:
        raise usage(f"{a.model} does not remember its training rows; give --reference FILE")
    return CellCounts(np.array(counts, dtype=np.intp), float(facts["confidence"]))
