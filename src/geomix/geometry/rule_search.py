"""Search for rules: the conjunction of few conditions that covers most rows of a class.

Every column is cut into bins once (``RuleColumn``): the levels of a category, or the intervals
between cut points of a number. A condition is a run of bins of a number, or a set of levels. A rule
is grown by beam search, one column at a time. With hits and misses counted per bin, every run of
bins of a column is evaluated from cumulative sums. Levels are sorted by purity, and every prefix of
that order is evaluated.

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
        drafts = [one for draft in beam for one in search.extended(draft)]
        for one in drafts:
            if one.score > (0.0 if best is None else best.score):
                best = one
        beam = _distinct(sorted(drafts, key=lambda one: -one.gain))
        if not beam:
            break
    return best


def _distinct(drafts: list[Draft]) -> list[Draft]:
    """The first few drafts that cover different rows."""
    kept: dict[bytes, Draft] = {}
    for one in drafts:
        kept.setdefault(np.packbits(one.inside).tobytes(), one)
        if len(kept) == BEAM:
            break
    return list(kept.values())


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

    def extended(self, draft: Draft) -> list[Draft]:
        """The draft with one more condition: the best ones of every other column."""
        cells = self.cells[draft.inside]
        counts = np.bincount(cells.ravel(), minlength=4 * self.starts[-1]).reshape(-1, 4)
        made = []
        for j, column in enumerate(self.columns):
            if j in draft.bins:
                continue
            own = counts[self.starts[j] : self.starts[j + 1]].astype(float)
            for bins, gain, score in self._conditions(column, own):
                if len(bins) < column.n_bins or own[column.n_bins :].any():
                    chosen = np.zeros(len(own), dtype=bool)
                    chosen[list(bins)] = True
                    inside = draft.inside & chosen[column.codes]
                    made.append(Draft({**draft.bins, j: bins}, inside, gain, score))
        return made

    def _conditions(
        self, column: RuleColumn, counts: FloatArray
    ) -> list[tuple[tuple[int, ...], float, float]]:
        """The condition with the largest gain and the one with the largest score."""
        total = counts.sum(axis=0)
        n_hits = total[NEW_HIT] + total[OLD_HIT]
        if not n_hits or not total[NEW_HIT]:
            return []
        before = n_hits / total.sum()
        counts = counts[: column.n_bins]
        if column.is_ordered:
            edges = np.vstack([np.zeros(4), np.cumsum(counts, axis=0)])
            first, last = np.triu_indices(len(counts))
            sums = edges[last + 1] - edges[first]
        else:
            rows = counts.sum(axis=1)
            hits = counts[:, NEW_HIT] + counts[:, OLD_HIT]
            share = np.where(rows > 0, hits / np.maximum(rows, 1.0), -1.0)
            order = np.lexsort((-rows, -share))
            order = order[rows[order] > 0]
            sums = np.cumsum(counts[order], axis=0)
        gain, score = self._values(sums, before)
        made = []
        for i in sorted({int(gain.argmax()), int(score.argmax())}):
            if gain[i] > 0.0:
                run = range(first[i], last[i] + 1) if column.is_ordered else sorted(order[: i + 1])
                made.append((tuple(map(int, run)), float(gain[i]), float(score[i])))
        return made

    def _values(self, sums: FloatArray, before: float) -> tuple[FloatArray, FloatArray]:
        """FOIL gain and score of conditions with counts ``sums``, (n, 4)."""
        rows = np.maximum(sums.sum(axis=1), 1.0)
        share = (sums[:, NEW_HIT] + sums[:, OLD_HIT]) / rows
        enough = sums[:, NEW_HIT] + sums[:, NEW_MISS] >= self.min_new
        gain = sums[:, NEW_HIT] * np.log(np.maximum(share, 1e-300) / before)
        # A condition that keeps the purity has a tiny gain, so that it competes by its score.
        gain = np.where(enough, np.maximum(gain, 1e-12 * (share >= before)), -1.0)
        score = sums[:, NEW_HIT] - self.penalty * sums[:, NEW_MISS]
        return gain, np.where(enough & (share >= self.purity), score, -np.inf)
