"""What ``counterfactual`` and ``counterfactuals`` return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from geomix.table.printing import SmallTable, frame_of, html_of, plain


@dataclass(frozen=True)
class Counterfactual:
    """status : "found", "infeasible" (proved) or "not found" (not proved)
    target : the class asked for;  label : the predicted class of the row
    before, after : the row as it is and as it would have to be, raw cells by column name
    distance : between them, in standard deviations and changed levels;  lower_bound : proved
    probability : of the target after the change
    """

    status: str
    target: Any
    label: Any
    norm: str
    before: dict[str, Any]
    after: dict[str, Any] | None
    distance: float
    lower_bound: float
    probability: float | None

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """(before, after) of the columns that change."""
        if self.after is None:
            return {}
        pairs = ((name, (cell, self.after[name])) for name, cell in self.before.items())
        return {name: pair for name, pair in pairs if pair[0] != pair[1]}

    @property
    def is_nearest(self) -> bool:
        """Whether it is proved, up to a relative error of 1e-6, that no nearer row exists."""
        return self.status == "found" and self.distance <= self.lower_bound * (1.0 + 1e-6) + 1e-7

    def to_frame(self) -> Any:
        """A pandas frame with a line for each column that changes."""
        return frame_of(self._records(), ["column", "before", "after"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; an infinite bound is None."""
        facts: dict[str, Any] = plain(asdict(self))
        changes = plain({name: list(pair) for name, pair in self.changes.items()})
        return facts | {"changes": changes, "is_nearest": self.is_nearest}

    def to_html(self) -> str:
        """A table of the changes, everything escaped."""
        return html_of("counterfactual", [self._table()])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self._table())

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"column": name, "before": before, "after": after}
            for name, (before, after) in self.changes.items()
        ]

    def _table(self) -> SmallTable:
        lines = tuple((name, a, b) for name, (a, b) in self.changes.items())
        if self.status == "found":
            title = (
                f"{self.label} becomes {self.target} ({self.probability:.1%}) by {len(lines)} of "
                f"{len(self.before)} columns, at distance {self.distance:.4g} ({self.norm}); none "
                f"is nearer than {self.lower_bound:.4g}"
            )
        elif self.status == "infeasible":
            title = f"{self.label} cannot become {self.target} by the changes allowed: proved"
        else:
            title = (
                f"No way from {self.label} to {self.target} was found; that none exists is not "
                f"proved. None is shorter than {self.lower_bound:.4g}"
            )
        return SmallTable(title, ("column", "before", "after"), lines)


@dataclass(frozen=True)
class Counterfactuals:
    """Several counterfactuals of one row, nearest first, that change different sets of columns."""

    found: tuple[Counterfactual, ...]

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.found)

    def __getitem__(self, i: int) -> Counterfactual:
        return self.found[i]

    def to_frame(self) -> Any:
        """A pandas frame with a line for each change of each counterfactual."""
        records = [{"answer": i} | one for i, cf in enumerate(self.found) for one in cf._records()]
        return frame_of(records, ["answer", "column", "before", "after"])

    def to_dict(self) -> dict[str, Any]:
        return {"counterfactuals": [one.to_dict() for one in self.found]}

    def to_html(self) -> str:
        return html_of("counterfactual", [one._table() for one in self.found])

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.found))
