"""The choice of a fit as a table: what each family of models reached, and the price of reading.

A row is the best candidate of a family on the rows that decided: validation log-loss and accuracy,
planes, pairs, numbers to read, and the verdict of the race. The *price of readability* is the loss
of the chosen model beside the best simpler and the best richer family that was measured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from geomix.table.printing import SmallTable, frame_of, html_of

HEADINGS = (
    "family", "log-loss", "accuracy", "planes", "pairs", "numbers", "rows", "verdict",
)  # fmt: skip


def is_chosen(verdict: str) -> bool:
    """Whether a verdict is that of the chosen family, with models added to it or without."""
    return verdict.startswith("chosen")


@dataclass(frozen=True)
class FamilyResult:
    """The best candidate of one family. n_rows : training rows when it was last measured."""

    family: str
    log_loss: float
    accuracy: float
    n_planes: int
    n_pairs: int
    n_numbers: int
    n_rows: int
    verdict: str

    @property
    def is_chosen(self) -> bool:
        return is_chosen(self.verdict)


@dataclass(frozen=True)
class Choice:
    """Families from simple to rich, and why the race ended where it ended early."""

    results: tuple[FamilyResult, ...] = ()
    ended: str = ""

    def __bool__(self) -> bool:
        return bool(self.results)

    @property
    def chosen(self) -> FamilyResult:
        return next(one for one in self.results if one.is_chosen)

    @property
    def sentence(self) -> str:
        """The chosen model beside the best simpler and richer families."""
        if not self.results:
            return "Nothing was compared."
        at = self.results.index(self.chosen)
        chosen = self.chosen
        family = f"{chosen.family}{chosen.verdict.removeprefix('chosen')}"
        text = f"Chosen: {family}, validation log-loss {chosen.log_loss:.4f}"
        others = [
            f"best {side} family: {best.family}, {best.log_loss:.4f}"
            for side, group in (("simpler", self.results[:at]), ("richer", self.results[at + 1 :]))
            if (best := min(group, key=lambda one: one.log_loss, default=None)) is not None
        ]
        ended = f" The race ended early: {self.ended}." if self.ended else ""
        return "; ".join([text, *others]) + "." + ended

    def as_lists(self) -> list[list[Any]]:
        """The table as plain values, with ``HEADINGS``: what a model keeps of it."""
        return [list(row) for row in self._table().rows]

    def __str__(self) -> str:
        return f"{self._table()}\n{self.sentence}" if self else self.sentence

    def _repr_html_(self) -> str:
        return html_of("choice", [self._table()])

    def to_frame(self) -> Any:
        """A pandas frame with a row for each family."""
        names = list(FamilyResult.__dataclass_fields__)
        return frame_of([asdict(one) for one in self.results], names)

    def _table(self) -> SmallTable:
        rows = tuple(
            (
                one.family, f"{one.log_loss:.4f}", f"{one.accuracy:.4f}", one.n_planes,
                one.n_pairs, one.n_numbers, one.n_rows, one.verdict,
            )
            for one in self.results
        )  # fmt: skip
        return SmallTable("Families of models, simple to rich, on validation rows", HEADINGS, rows)
