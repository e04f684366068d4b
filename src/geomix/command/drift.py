"""``geomix drift``: compare new rows with the training rows. Exit code 1 if they differ."""

from __future__ import annotations

from typing import Any, NamedTuple

from geomix.command import options
from geomix.command.exit_codes import DATA, exit_code_for_bad_values, usage_error

EXAMPLES = """\
  geomix drift m.geomix this-week.csv || mail -s drift me@example.org
  geomix drift m.geomix this-week.csv --reference last-year.csv --level 0.001 --json
"""
SMALLEST_SHOWN = 0.0005  # changes below 0.1 percentage points are rounded to zero
MOST_SHOWN = 10


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "drift", "test whether new rows differ from old ones (exit 1: drift)", EXAMPLES
    )
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="new rows")
    parser.add_argument(
        "--reference", metavar="FILE", help="rows to compare with (default: the training rows)"
    )
    parser.add_argument(
        "--level",
        type=options.probability,
        default=0.01,
        metavar="P",
        help="report drift if the p-value is below this (default: 0.01)",
    )
    parser.add_argument(
        "--least-change",
        type=options.share,
        default=0.0,
        metavar="SHARE",
        help="and if some plane's share of the rows changes by at least this (default: 0)",
    )
    options.add_json(parser)
    options.add_read_options(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.explain.drift import compare_counts, with_columns

    options.check_one_standard_input(args.data, args.reference, "the new rows and the reference")
    model = options.load_model(args.model)
    new, new_rows = _counts_and_rows(args, model, args.data)
    rows = []
    if args.reference is None:
        reference = _training_counts(args, model)
    else:
        reference, reference_rows = _counts_and_rows(args, model, args.reference)
        rows = [reference_rows, new_rows]
    with exit_code_for_bad_values(DATA):
        found = compare_counts(model, reference, new)
        if rows:
            found = with_columns(found, model, *(one.X for one in rows))
    result = DriftResult(found, args.level, args.least_change)
    options.print_result(args, result, _basis(rows))
    return int(result.is_drift)


def _counts_and_rows(args: Any, model: Any, path: Any) -> tuple[Any, Any]:
    """Rows of a file by plane, all of them counted; and an even sample of the rows."""
    from geomix.command.inputs import blocks_of_rows
    from geomix.command.row_sample import EvenSample, sample_size
    from geomix.explain.drift import cell_counts

    counts, sample = None, EvenSample(sample_size(len(model.columns)))
    for rows in blocks_of_rows(args, model, path):
        with exit_code_for_bad_values(DATA):
            found = cell_counts(model, rows.X)
        counts = found if counts is None else counts + found
        sample.add(rows)
    return counts, sample.rows()


def _basis(rows: Any) -> str | None:
    parts = [f"{one.X.num_rows:,} of {one.n_total:,}" for one in rows if one.basis is not None]
    if not parts:
        return None
    return f"planes from all rows; columns from {' and '.join(parts)} rows, drawn evenly"


def _p_value(p: float) -> str:
    return "< 1e-10" if p < 1e-10 else f"{p:.2g}"


def _effect(one: Any) -> str:
    """What a column does to the class that it changes most, in log-odds."""
    if one.effect is None or abs(one.effect) < 0.005:
        return "none"
    return f"{one.effect:+.2f} for {one.label}"


class DriftResult(NamedTuple):
    """The test's result, and the thresholds that make it drift."""

    found: Any
    level: float
    least_change: float

    @property
    def is_drift(self) -> bool:
        largest = max(abs(plane.change) for plane in self.found.planes)
        return bool(self.found.p_value < self.level and largest >= self.least_change)

    def to_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = self.found.to_dict()
        return facts | {"drift": self.is_drift}

    def __str__(self) -> str:
        found = self.found
        lines = [
            f"{'drift' if self.is_drift else 'no drift'}: p = {found.p_value:.3g}, "
            f"level {self.level:g} (G = {found.g:.4g}, {found.degrees} degrees of freedom)",
            f"{found.n_new} new rows, {found.n_reference} reference rows; mean confidence "
            f"{found.confidence_new:.1%}, before {found.confidence_reference:.1%}",
            self._columns(),
            self._planes(),
        ]
        return "\n".join(lines)

    def _columns(self) -> str:
        """The columns that moved, the largest part of the change in answers first."""
        from geomix.table.printing import SmallTable

        if not self.found.columns:
            return "give --reference FILE to see which columns moved"
        moved = [one for one in self.found.columns if self._has_moved(one)]
        if not moved:
            return "no column moved"
        rows = tuple(
            (
                one.column,
                f"{one.distance:.1%}",
                _p_value(one.p_value),
                "" if one.share is None else f"{one.share:.0%}",
                _effect(one),
            )
            for one in moved[:MOST_SHOWN]
        )
        shown = f", {MOST_SHOWN} of {len(moved)}" if len(moved) > MOST_SHOWN else ""
        title = f"columns that moved{shown}:"
        headings = ("column", "moved by", "p", "share of the change", "effect on the answers")
        return str(SmallTable(title, headings, rows))

    def _has_moved(self, one: Any) -> bool:
        return bool(one.p_value < self.level and one.distance >= SMALLEST_SHOWN)

    def _planes(self) -> str:
        """The planes whose share of the rows changed, the largest parts of G first."""
        from geomix.table.printing import SmallTable

        moved = [plane for plane in self.found.planes if abs(plane.change) >= SMALLEST_SHOWN]
        if not moved:
            return "no plane's share of the rows changed by 0.1 percentage points"
        rows = tuple(
            (
                plane.label,
                plane.plane + 1,
                *((plane.member + 1,) if self._has_members else ()),
                f"{plane.share_reference:.1%}",
                f"{plane.share_new:.1%}",
                f"{100.0 * plane.change:+.1f} points",
            )
            for plane in moved[:MOST_SHOWN]
        )
        headings = ("class", "plane", *(("member",) if self._has_members else ()))
        shown = f", {MOST_SHOWN} of {len(moved)}" if len(moved) > MOST_SHOWN else ""
        title = f"planes whose share of the rows changed{shown}:"
        return str(SmallTable(title, (*headings, "before", "now", "change"), rows))

    @property
    def _has_members(self) -> bool:
        return any(plane.member for plane in self.found.planes)


def _training_counts(args: Any, model: Any) -> Any:
    """Counts of the training rows, which the model file holds."""
    import numpy as np

    from geomix.explain.drift import CellCounts

    facts = model.training or {}
    counts = facts.get("plane_rows")
    if not isinstance(counts, list) or len(counts) != model.planes.n_planes or model.edits:
        raise usage_error(
            f"{args.model} holds no counts of its training rows; give rows to compare with by "
            "--reference FILE"
        )
    return CellCounts(np.array(counts, dtype=np.intp), float(facts["confidence"]))
