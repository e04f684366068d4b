"""One search for a counterfactual: the model, the row, its constraints, and what is valid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.explain.additive_form import Additive
from geomix.geometry.constraints import Constraints
from geomix.geometry.options import Options, column_options, undominated
from geomix.model import GeometricMixture

LEADS = (1e-9, 1e-7, 1e-5, 1e-3)  # of a score: larger ones where rounding exceeds the smaller


@dataclass(frozen=True)
class Effort:
    """Limits of branch and bound: values of a number, and partial choices kept."""

    n_values: int
    n_states: int


# Few planes have tight bounds, which prune nearly everything. Bounds of many planes are loose, and
# continuous columns are refined anyway: more effort would prove nothing there.
EASY, HARD, CONTINUOUS = Effort(256, 1_500), Effort(64, 1_500), Effort(64, 400)
FEW_PLANES = 4


@dataclass(frozen=True, eq=False)
class Task:
    """row : encoded;  given : the same row as raw cells by column name"""

    model: GeometricMixture
    form: Additive | None
    row: FloatArray
    given: dict[str, Any]
    free: Constraints
    norm: float
    sparse: int | str | None
    probability: float | None

    @cached_property
    def options(self) -> list[Options]:
        assert self.form is not None
        n_values = self.effort.n_values
        return column_options(self.form, self.row, self.free, self.norm, n_values)

    def options_for(self, code: int) -> list[Options]:
        """The options that no cheaper one dominates on the way to a class, made once for it."""
        if code not in self._undominated:
            assert self.form is not None
            planes = self.form.planes
            self._undominated[code] = [undominated(one, planes, code) for one in self.options]
        return self._undominated[code]

    @cached_property
    def _undominated(self) -> dict[int, list[Options]]:
        return {}

    @cached_property
    def plane_scores(self) -> FloatArray:
        """(P,) of the row."""
        assert self.form is not None
        return self.form.scores(self.row[None, :])[0]

    def options_within(self, r: float) -> list[Options]:
        """As ``options``, among the changes of at most r in every column: fewer values, so that
        less has to be thinned."""
        assert self.form is not None
        free = self.free.within(self.row, r)
        return column_options(self.form, self.row, free, self.norm, self.effort.n_values)

    @cached_property
    def farthest(self) -> float:
        """No choice of options is further away than this."""
        costs = [float(one.cost.max(initial=0.0)) for one in self.options]
        return float(np.sum(costs) ** (1.0 / self.norm))

    @cached_property
    def is_discrete(self) -> bool:
        """Whether every column that may change has levels or steps."""
        free, cells = self.free, enumerate(self.row.tolist())
        return all(
            j in free.levels or free.steps[j] is not None or free.is_fixed(j, x) for j, x in cells
        )

    @cached_property
    def has_only_numbers(self) -> bool:
        """Whether only numbers may change, and some of them continuously."""
        return not self.is_discrete and not self.free.moves_levels

    @cached_property
    def has_empty_column(self) -> bool:
        """Whether the limits of a column leave it no value."""
        free, row = self.free, self.row
        limited = np.isfinite(free.low) | np.isfinite(free.high)
        return any(not codes for codes in free.levels.values()) or any(
            _has_no_step(row[j], free.low[j], free.high[j], free.steps[j])
            for j in np.flatnonzero(limited & ~np.isnan(row))
        )

    @property
    def effort(self) -> Effort:
        few = self.form is not None and self.form.planes.n_planes <= FEW_PLANES
        return CONTINUOUS if not self.is_discrete else EASY if few else HARD

    @property
    def log_odds(self) -> float | None:
        p = self.probability
        return None if p is None else float(np.log(p) - np.log1p(-p))

    @property
    def leads(self) -> tuple[float, ...]:
        """Leads of the target's score over each rival to try in turn. A probability p needs a lead
        of T log(p / (1 - p)), and T log((C - 1) p / (1 - p)) is always enough."""
        if self.log_odds is None:
            return LEADS
        T, n_rivals = self.model.temperature, len(self.model.classes) - 1
        least, enough = T * self.log_odds, T * (self.log_odds + float(np.log(n_rivals)))
        parts = np.linspace(least, enough, 4 if n_rivals > 1 else 1)
        return tuple(max(float(parts[min(i, len(parts) - 1)]), 0.0) + LEADS[i] for i in range(4))

    def is_valid(self, rows: FloatArray, code: int) -> BoolArray:
        """(n,) whether the model predicts the class, with the wanted probability."""
        valid = self.model.answer("class_scores", rows).argmax(axis=1) == code
        if self.probability is not None:
            valid &= self.model.answer("predict_proba", rows)[:, code] >= self.probability
        return np.asarray(valid)

    def distances(self, rows: FloatArray) -> FloatArray:
        """(n,) between the row and others, as they would be written down."""
        return np.asarray(np.linalg.norm(self.free.change_costs(rows, self.row), self.norm, axis=1))

    def distance(self, row: FloatArray) -> float:
        return float(self.distances(row[None, :])[0])

    def distances_by_column(self, row: FloatArray) -> FloatArray:
        """(n_columns,) cost of each column's change."""
        return self.free.change_costs(row[None, :], self.row)[0]

    def counts(self, rows: FloatArray) -> IntArray:
        """(n,) changed columns. A missing cell stays missing, which is no change."""
        return np.asarray((self.free.change_costs(rows, self.row) > 0.0).sum(axis=1))

    def n_changes(self, row: FloatArray | None) -> int:
        return 0 if row is None else int(self.counts(row[None, :])[0])


def _has_no_step(x: float, low: float, high: float, step: float | None) -> bool:
    """Whether no x + k step lies within the limits."""
    if step is None:
        return bool(low > high)
    return bool(np.ceil((low - x) / step - 1e-9) > np.floor((high - x) / step + 1e-9))


@dataclass(frozen=True, eq=False)
class Answer:
    status: str
    code: int
    row: FloatArray | None
    distance: float
    lower_bound: float
