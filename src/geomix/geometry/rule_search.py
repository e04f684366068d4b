"""Search for rules: the conjunction of few conditions that covers most rows of a class.

Every column is cut into bins once (``RuleColumn``): the levels of a category, or the intervals
between cut points of a number. A condition is a run of bins of a number, or a set of levels. A rule
is grown by beam search, one column at a time. With hits and misses counted per bin, every run of
bins of all columns is evaluated at once from cumulative sums. Levels are sorted by purity, and
every prefix of that order is evaluated.

    partial rules   ranked by FOIL gain:  hits * log(purity / purity without the last condition)
    rules           purity >= the wanted one;  the best has the largest  new hits - l * new misses,
                    l = PENALTY * wanted / (1 - wanted), where "new" rows are not covered yet
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray

BEAM = 6  # partial rules kept per number of conditions; time grows in proportion
PENALTY = 0.5  # 0 takes every row that the purity allows, 1 only bins that are as pure themselves
LARGEST_PENALTY = 1e6  # for a wanted purity of 1
NEW_HIT, OLD_HIT, NEW_MISS, OLD_MISS = range(4)


@dataclass(frozen=True, eq=False)
class RuleColumn:
    """One column in bins. codes : (n_rows,) bin of each row;  n_bins : runs and sets are made of
    bins 0 .. n_bins - 1, and the codes from n_bins on (missing numbers) satisfy no condition."""

    codes: IntArray
    n_bins: int
    is_ordered: bool


@dataclass(frozen=True, eq=False)
class Draft:
    """A rule as sets of bins by column. inside : (n_rows,);  gain : FOIL gain of the last
    condition;  score : new hits - l * new misses, or -inf if the purity is too low."""

    bins: dict[int, tuple[int, ...]]
    inside: BoolArray
    gain: float
    score: float


def best_draft(
    columns: list[RuleColumn],
    is_hit: BoolArray,
    is_new: BoolArray,
    purity: float,
    max_terms: int,
    min_new: int,
) -> Draft | None:
    """The best rule for the rows ``is_hit`` with at least ``min_new`` new rows; None if none."""
    search = _Search(columns, is_hit, is_new, purity, min_new)
    everything = Draft({}, np.ones(len(is_hit), dtype=bool), 0.0, -np.inf)
    beam, best = [everything], None
    for _ in range(max_terms):
        longer = [one for draft in beam for one in search.extended(draft)]
        for one in longer:
            if one.score > (0.0 if best is None else best.score):
                best = one
        beam = search.distinct(sorted(longer, key=lambda one: -one.gain))
        if not beam:
            break
    return None if best is None else search.draft(best)


@dataclass(frozen=True, eq=False)
class _Longer:
    """A draft and one more condition, whose rows are looked up only where they are needed."""

    draft: Draft
    column: int
    bins: tuple[int, ...]
    gain: float
    score: float


class _Search:
    def __init__(
        self,
        columns: list[RuleColumn],
        is_hit: BoolArray,
        is_new: BoolArray,
        purity: float,
        min_new: int,
    ) -> None:
        self.columns = columns
        self.purity = purity
        self.min_new = min_new
        odds = purity / (1.0 - purity) if purity < 1.0 else np.inf
        self.penalty = min(PENALTY * odds, LARGEST_PENALTY)
        kind = np.where(is_hit, NEW_HIT, NEW_MISS) + np.where(is_new, 0, 1)
        sizes = [int(one.codes.max(initial=0)) + 1 for one in columns]
        self.starts = np.concatenate([[0], np.cumsum(np.maximum(sizes, 1))])
        stacked = [one.codes + start for one, start in zip(columns, self.starts, strict=False)]
        self.cells = 4 * np.column_stack(stacked) + kind[:, None]
        self._lay_out_runs()

    def _lay_out_runs(self) -> None:
        """Runs of bins of all ordered columns side by side: ``places`` (n_ordered, n_bins) of the
        counts, and which of the runs ``first`` to ``last`` a column has, (n_ordered, n_runs)."""
        self.ordered = [j for j, one in enumerate(self.columns) if one.is_ordered]
        n_bins = np.array([self.columns[j].n_bins for j in self.ordered], dtype=np.intp)
        bins = np.arange(n_bins.max(initial=0))
        self.is_bin = bins < n_bins[:, None]
        self.places = np.where(self.is_bin, self.starts[self.ordered][:, None] + bins, 0)
        self.first, self.last = np.triu_indices(len(bins))
        self.is_run = self.last < n_bins[:, None]

    def draft(self, one: _Longer) -> Draft:
        column = self.columns[one.column]
        chosen = np.zeros(max(int(column.codes.max(initial=0)) + 1, column.n_bins), dtype=bool)
        chosen[list(one.bins)] = True
        inside = one.draft.inside & chosen[column.codes]
        return Draft({**one.draft.bins, one.column: one.bins}, inside, one.gain, one.score)

    def distinct(self, longer: list[_Longer]) -> list[Draft]:
        """The first few drafts that cover different rows."""
        kept: dict[bytes, Draft] = {}
        for one in longer:
            draft = self.draft(one)
            kept.setdefault(np.packbits(draft.inside).tobytes(), draft)
            if len(kept) == BEAM:
                break
        return list(kept.values())

    def extended(self, draft: Draft) -> list[_Longer]:
        """The draft with one more condition: the best ones of every other column."""
        cells = self.cells[draft.inside]
        by_cell = np.bincount(cells.ravel(), minlength=4 * self.starts[-1])
        counts: FloatArray = by_cell.reshape(-1, 4).astype(float)
        total = np.bincount(cells[:, 0] % 4, minlength=4).astype(float)
        if not total[NEW_HIT]:
            return []
        before = (total[NEW_HIT] + total[OLD_HIT]) / total.sum()
        made = []
        for j, column in enumerate(self.columns):
            if j in draft.bins or column.is_ordered:
                continue
            own = counts[self.starts[j] : self.starts[j + 1]]
            order, sums = _levels_by_purity(own[: column.n_bins])
            gain, score = self._values(sums, before)
            for i in _best_two(gain, score):
                bins = tuple(sorted(order[: i + 1].tolist()))
                made.append(_Longer(draft, j, bins, float(gain[i]), float(score[i])))
        made += self._runs(draft, counts, before)
        made.sort(key=lambda one: one.column)
        return [one for one in made if self._is_condition(one, counts)]

    def _runs(self, draft: Draft, counts: FloatArray, before: float) -> list[_Longer]:
        """The best runs of bins of every ordered column."""
        if not self.ordered:
            return []
        by_bin = counts[self.places] * self.is_bin[:, :, None]
        edges = np.concatenate([np.zeros((len(by_bin), 1, 4)), np.cumsum(by_bin, axis=1)], axis=1)
        gain, score = self._values(edges[:, self.last + 1] - edges[:, self.first], before)
        gain, score = np.where(self.is_run, gain, -1.0), np.where(self.is_run, score, -np.inf)
        made = []
        for at, j in enumerate(self.ordered):
            for i in _best_two(gain[at], score[at]) if j not in draft.bins else ():
                bins = tuple(range(int(self.first[i]), int(self.last[i]) + 1))
                made.append(_Longer(draft, j, bins, float(gain[at, i]), float(score[at, i])))
        return made

    def _is_condition(self, one: _Longer, counts: FloatArray) -> bool:
        """Whether it leaves out a bin, or rows that are in none."""
        n_bins = self.columns[one.column].n_bins
        outside = counts[self.starts[one.column] + n_bins : self.starts[one.column + 1]]
        return len(one.bins) < n_bins or bool(outside.any())

    def _values(self, sums: FloatArray, before: float) -> tuple[FloatArray, FloatArray]:
        """FOIL gain and score of conditions with counts ``sums``, (..., 4)."""
        new_hits, new_misses = sums[..., NEW_HIT], sums[..., NEW_MISS]
        rows = np.maximum(sums.sum(axis=-1), 1.0)
        share = (new_hits + sums[..., OLD_HIT]) / rows
        enough = new_hits + new_misses >= self.min_new
        gain = new_hits * np.log(np.maximum(share, 1e-300) / before)
        # A condition that keeps the purity has a tiny gain, so that it competes by its score.
        gain = np.where(enough, np.maximum(gain, 1e-12 * (share >= before)), -1.0)
        score = new_hits - self.penalty * new_misses
        return gain, np.where(enough & (share >= self.purity), score, -np.inf)


def _levels_by_purity(counts: FloatArray) -> tuple[IntArray, FloatArray]:
    """Levels that have rows, the purest first, and cumulative counts in that order."""
    rows = counts.sum(axis=1)
    hits = counts[:, NEW_HIT] + counts[:, OLD_HIT]
    share = np.where(rows > 0, hits / np.maximum(rows, 1.0), -1.0)
    order = np.lexsort((-rows, -share))
    order = order[rows[order] > 0]
    return order, np.cumsum(counts[order], axis=0)


def _best_two(gain: FloatArray, score: FloatArray) -> list[int]:
    """Positions of the largest gain and of the largest score, without conditions that gain
    nothing."""
    if not len(gain):
        return []
    return [i for i in sorted({int(gain.argmax()), int(score.argmax())}) if gain[i] > 0.0]
