"""From a candidate to its neighbours: another penalty, width, number of knots, shrink_to_mean or
weighing.

A walk measures each candidate once and goes on while the held-out loss falls. It ends early when
the held-out rows leave nothing to be won, or when its time is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from geomix.search.folds import Candidate, Fold, Watch
from geomix.search.trials import Measured, is_level, measure
from geomix.training.deadline import Deadline
from geomix.training.parameter_checks import MOST_KNOTS
from geomix.training.settings import Settings

# Kernel widths to try, as factors of the one that the median distance suggests.
GAMMA_STEP = 4.0
GAMMA_FACTOR_RANGE = (1 / 16, 64.0)
# The penalties that a walk may go through, per lift. Fourier features are bounded by one,
# standardised columns are not: their weights live on other scales.
L2_RANGE = {"linear": (1e-6, 1e-1), "spline": (1e-6, 1.0), "fourier": (1e-7, 1e-2)}
# The numbers of knots.
KNOTS_STEP = 2
KNOTS_RANGE_OF_ONE_PLANE = (16, MOST_KNOTS)
KNOTS_RANGE_OF_SEVERAL_PLANES = (16, 64)
# Shares of the penalty that the mean of several planes may be spared.
RELIEFS = (0.9, 0.0)
# A stronger penalty is preferred within this share of the handicap of a richer model.
PENALTY_HANDICAP = 0.25
# A candidate this many standard errors behind the best so far is not tried on further folds.
BEATEN_ERRORS = 2.5
BEATEN_ERRORS_OF_FEW = 1.5  # of few rows, which have many folds
# A kind whose first candidate has this many times the loss of the best is not searched further.
HOPELESS = 1.5
# Unless a step of the penalty takes its loss down by this factor.
CATCHING_UP = 0.8
# Held-out rows whose losses come to this many nats in all leave nothing to be won.
NOTHING_TO_WIN = 1.0


class SearchIsOver(Exception):
    """The message says why."""


@dataclass(frozen=True)
class Walk:
    """Goes from candidate to candidate while the held-out loss falls.

    handicap : how many standard errors worse a simpler model may be and still win; above zero where
    rows are few.
    """

    folds: list[Fold]
    settings: Settings
    watch: Watch | None
    handicap: float
    deadline: Deadline | None = None
    measured: dict[Candidate, Measured] = field(default_factory=dict)

    @property
    def best(self) -> Measured | None:
        """The best so far, of any kind."""
        return min(self.measured.values(), key=lambda m: m.loss, default=None)

    def measure(self, candidate: Candidate) -> Measured:
        if candidate not in self.measured:
            self._go_on_only_if_worth_it()
            beaten = BEATEN_ERRORS if self.handicap == 0.0 else BEATEN_ERRORS_OF_FEW
            self.measured[candidate] = measure(
                candidate, self.folds, self.settings, self.watch, self.best, beaten
            )
        return self.measured[candidate]

    def _go_on_only_if_worth_it(self) -> None:
        best = self.best
        if best is None:
            return
        if best.loss * len(best.row_losses) <= NOTHING_TO_WIN:
            raise SearchIsOver("The search ended there: nothing left to be won.")
        if self.deadline is not None and self.deadline.is_past("choose"):
            raise SearchIsOver("The search ended early: its share of time_limit was used up.")

    def again(self, found: Measured) -> Measured:
        """What was measured on other rows, measured on these."""
        if self.settings.l2 != "auto":
            return self.measure(found.candidate)
        return self.measure(found.candidate.for_rows(self.folds[0].n_train, found.n_rows))

    def is_hopeless(self, start: Measured) -> bool:
        """So far behind the best of any kind that no penalty will bring it forward."""
        return self.best is not None and start.loss > HOPELESS * self.best.loss

    def is_behind(self, start: Measured, factor: float) -> bool:
        """So far behind the best of any kind that searching on is not worth its time; on few rows,
        where it takes little, only what is hopeless is given up."""
        best = self.best
        return self.handicap == 0.0 and best is not None and start.loss > factor * best.loss

    @property
    def most_knots(self) -> int:
        return self.folds[0].preparation.most_knots

    @property
    def has_many_rows(self) -> bool:
        """Whether these are some of many rows, for which trials are few."""
        return self.folds[0].is_subsample

    def best_shrinkage(self, start: Measured) -> Measured:
        tried = [
            self.measure(replace(start.candidate, shrink_to_mean=one)) for one in self.shrinkages
        ]
        return min([start, *tried], key=lambda m: m.loss)

    @property
    def shrinkages(self) -> tuple[float, ...]:
        return (
            RELIEFS
            if self.settings.shrink_to_mean == "auto"
            else (float(self.settings.shrink_to_mean),)
        )

    @property
    def may_adapt(self) -> bool:
        return self.settings.adaptive_penalty == "auto" and self.settings.l2 == "auto"

    def best_penalty_kind(self, start: Measured) -> Measured:
        """Alike or adaptive, whichever is better."""
        if not self.may_adapt:
            return start
        other = self.measure(replace(start.candidate, adaptive=not start.candidate.adaptive))
        return other if other.loss < start.loss else start

    def best_width(self, start: Measured) -> Measured:
        """The kernel width, or the number of knots, stepped one way or the other while that
        helps."""
        best = start
        for up in (True, False):
            while stepped := self._stepped_width(best.candidate, up):
                other = self.measure(stepped)
                if other.loss >= best.loss:
                    break
                best = other
            if best is not start:
                break
        return best

    def _stepped_width(self, candidate: Candidate, up: bool) -> Candidate | None:
        """The next width in that direction; None at the end of the range, or where it is given."""
        if candidate.gamma_factor is not None and self.settings.gamma == "auto":
            return _step_gamma(candidate, GAMMA_STEP if up else 1.0 / GAMMA_STEP)
        # On few rows the knots are few already, and one more choice would be one too many.
        if candidate.n_knots is None or self.settings.n_knots != "auto" or self.handicap > 0.0:
            return None
        alone = candidate.n_planes == 1
        low, high = KNOTS_RANGE_OF_ONE_PLANE if alone else KNOTS_RANGE_OF_SEVERAL_PLANES
        high = min(high, self.most_knots)
        n_knots = candidate.n_knots * KNOTS_STEP if up else candidate.n_knots // KNOTS_STEP
        n_knots = min(max(n_knots, low), high)
        return None if n_knots == candidate.n_knots else self.with_knots(candidate, n_knots)

    def with_knots(self, candidate: Candidate, n_knots: int) -> Candidate:
        """As smooth with other knots: a step of size s costs s^2, K of size s / K cost s^2 / K."""
        assert candidate.n_knots is not None
        n_knots = min(n_knots, self.most_knots)
        changed = replace(candidate, n_knots=n_knots)
        if self.settings.l2 != "auto":
            return changed
        return _with_l2(changed, candidate.l2 * n_knots / candidate.n_knots)

    def by_tens(self, start: Measured) -> Measured:
        """The penalty stepped by ten, one way then the other, while that helps."""
        best = start
        if self.settings.l2 != "auto":
            return best
        for factor in (0.1, 10.0):
            while stepped := step(best.candidate, factor):
                other = self.measure(stepped)
                if other.loss >= best.loss:
                    break
                gained, best = other.loss < CATCHING_UP * best.loss, other
                if self.is_hopeless(best) and not gained:
                    return best
            if best is not start:
                break
        return best

    def by_half_tens(self, middle: Measured) -> Measured:
        """The best of a penalty and its neighbours at half a step."""
        steps = [step(middle.candidate, factor) for factor in (10.0**0.5, 10.0**-0.5)]
        tried = [self.measure(one) for one in steps if one is not None]
        return min([middle, *tried], key=lambda m: m.loss)

    def tuned(self, start: Measured) -> Measured:
        """The penalty stepped by ten, for a spline by less once more, and then as strong as it
        may be on few rows."""
        if self.settings.l2 != "auto" or self.is_hopeless(start):
            return start
        best = start if start.candidate.lift == "spline" else self.by_tens(start)
        if self.handicap == 0.0:
            return self.by_half_tens(best) if best.candidate.lift == "spline" else best
        chosen = best
        while stepped := step(chosen.candidate, 10.0):
            stronger = self.measure(stepped)
            if not is_level(stronger, best, PENALTY_HANDICAP * self.handicap):
                break
            chosen = stronger
        return chosen


def _with_l2(candidate: Candidate, l2: float) -> Candidate:
    low, high = L2_RANGE[candidate.lift]
    return replace(candidate, l2=float(f"{min(max(l2, low), high):.6g}"))


def step(candidate: Candidate, factor: float) -> Candidate | None:
    """The candidate with its penalty multiplied, or None at the end of the range."""
    low, high = L2_RANGE[candidate.lift]
    l2 = float(f"{candidate.l2 * factor:.6g}")  # 1e-6 * 10 is 1e-5, not a neighbour of it
    return replace(candidate, l2=l2) if low <= l2 <= high else None


def _step_gamma(candidate: Candidate, factor: float) -> Candidate | None:
    low, high = GAMMA_FACTOR_RANGE
    stepped = (candidate.gamma_factor or 1.0) * factor
    return replace(candidate, gamma_factor=stepped) if low <= stepped <= high else None
