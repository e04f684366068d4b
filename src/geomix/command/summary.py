"""Results of ``fit`` and ``evaluate`` as dataclasses that print as text or JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any

from geomix.table.printing import SmallTable, printable

MOST_CLASSES = 12


@dataclass(frozen=True)
class FitFacts:
    """The result of ``geomix fit``: data, model, how it was chosen, and metrics."""

    n_rows: int
    n_numbers: int
    n_categories: int
    classes: dict[str, int]
    lift: str
    choice: str
    planes: dict[str, int]
    n_members: int
    temperature: float
    held_out_log_loss: float | None
    test: Any
    tested_on: str | None
    streamed: bool
    seconds: float
    output: str
    n_bytes: int
    notes: tuple[str, ...]
    check: Any

    @classmethod
    def of(cls, estimator: Any, fitted: Any, args: Any) -> FitFacts:
        model, history = fitted.model, estimator.history_
        n_categories = int(model.schema.is_category.sum())
        chosen = next((one for one in history.trials if one.chosen), None)
        tested = f"{fitted.n_held_out} rows held out" if fitted.n_held_out else args.test
        return cls(
            sum(fitted.class_rows.values()),
            model.n_features - n_categories,
            n_categories,
            fitted.class_rows,
            model.lift.kind,
            str(history.choice) if history.choice else "",
            {
                str(label): n
                for label, n in zip(
                    model.classes.tolist(), model.planes.planes_per_member.tolist(), strict=True
                )
            },
            int(model.planes.n_members),
            float(model.temperature),
            None if chosen is None else float(chosen.valid_loss),
            fitted.metrics,
            None if fitted.metrics is None else str(tested),
            fitted.streamed,
            fitted.seconds,
            os.fsdecode(args.output),
            os.path.getsize(args.output),
            tuple(history.notes),
            estimator.table_check_,
        )

    def to_dict(self) -> dict[str, Any]:
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        test = None if self.test is None else self.test.to_dict()
        return facts | {"test": test, "check": self.check.to_dict()}

    def __str__(self) -> str:
        columns = _counted(self.n_numbers, "number", "numbers")
        columns += (
            f" and {_counted(self.n_categories, 'category', 'categories')}"
            if self.n_categories
            else ""
        )
        lines = [
            f"{self.n_rows} rows of {columns}, {len(self.classes)} classes: {_some(self.classes)}",
            f"{self.lift} lift, planes per class: {_some(self.planes)}{self._members()}",
        ]
        lines += self._check()
        if self.choice:
            lines.append(self.choice)
        if self.test is not None:
            lines.append(f"on {printable(str(self.tested_on))}: {metrics_line(self.test)}")
        elif self.held_out_log_loss is not None:
            lines.append(
                f"validation log-loss {self.held_out_log_loss:.4f}, on the rows that chose this "
                "model; use --test for an unbiased estimate"
            )
        how = "trained out of core" if self.streamed else "trained"
        lines.append(
            f"{how} in {self.seconds:.1f} s; {printable(self.output)} has {self.n_bytes} bytes"
        )
        return "\n".join(lines)

    def _check(self) -> list[str]:
        """The data check: the notes; serious findings were printed as warnings."""
        serious, notes = len(self.check.serious), self.check.notes
        counted = [_counted(serious, "warning above", "warnings above")] if serious else []
        counted += [_counted(len(notes), "note", "notes")] if notes else []
        title = f"data check: {' and '.join(counted) or 'no findings'}"
        return [title, *(f"  - {printable(finding.sentence)}" for finding in notes)]

    def _members(self) -> str:
        return "" if self.n_members == 1 else f", in each of {self.n_members} ensemble members"


@dataclass(frozen=True)
class EvaluateFacts:
    """The result of ``geomix evaluate``."""

    metrics: Any
    unknown_levels: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        return {**self.metrics.to_dict(), "unknown_levels": self.unknown_levels}

    def __str__(self) -> str:
        found = self.metrics
        rows = tuple(tuple(one.values()) for one in found.classes)
        table = SmallTable(metrics_line(found), ("label", "rows", "recall", "precision"), rows)
        return f"{found.n_rows} rows: {table}"


def metrics_line(found: Any) -> str:
    return (
        f"accuracy {found.accuracy:.4f}, macro-F1 {found.macro_f1:.4f}, log-loss "
        f"{found.log_loss:.4f}, Brier {found.brier:.4f}, calibration error "
        f"{found.calibration_error:.4f}"
    )


def _some(counts: dict[str, int]) -> str:
    shown = [f"{printable(name)} {count}" for name, count in list(counts.items())[:MOST_CLASSES]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
