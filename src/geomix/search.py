"""The search: which candidates are tried, and in which order.

From simple to rich: linear with one plane per class, linear with the budget's planes, spline with
one, Fourier with one, Fourier with the budget's, spline with several. Each looks for its penalty
by steps of ten; the last four are tried alike and weighed (``relevance.py``). What is far behind is
not searched further. The search ends early when the held-out rows leave nothing to be won, or when
its time is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from geomix.deadline import Deadline
from geomix.folds import Candidate, Fold, Watch
from geomix.recipe import MOST_KNOTS, Recipe
from geomix.trials import Measured, is_dear, is_level, measure

# Kernel widths to try, as factors of the one that the median distance suggests.
GAMMA_STEP = 4.0
GAMMA_FACTOR_RANGE = (1 / 16, 64.0)
# Middle penalty and the range that the search may walk through, per lift. Fourier features
# are bounded by one, standardised columns are not: their weights live on other scales.
DEFAULT_L2 = {"linear": 1e-4, "spline": 1e-3, "fourier": 1e-5}
L2_RANGE = {"linear": (1e-6, 1e-1), "spline": (1e-6, 1.0), "fourier": (1e-7, 1e-2)}
# Most knots of a curve, to start from: the curves of several planes share the work.
KNOTS_OF_ONE_PLANE = 64
KNOTS_OF_SEVERAL_PLANES = 32
KNOTS_STEP = 2
KNOTS_RANGE_OF_ONE_PLANE = (16, MOST_KNOTS)
KNOTS_RANGE_OF_SEVERAL_PLANES = (16, 64)
# Spline planes per class that are tried beside one, with which of them the search begins where
# rows are many (where they are few, with the fewest), and the relief of their mean plane.
RICH_PLANES = (4, 12, 32)
FIRST_OF_MANY_ROWS = 12
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
# On many rows what is within this factor of the best is searched further: the number of several
# planes; their penalty and knots, and those of a kernel that has its width.
PROMISING_NUMBER = 1.02
PROMISING = 1.05
# Where rows are many, kernel widths are compared on so many of those that are searched on.
ROWS_TO_PROBE = 5000
FREQUENCIES_TO_PROBE = 256
# A kernel that is behind the best of the others by this factor there is not tried on more.
PROMISING_KERNEL = 1.03
# Held-out rows whose losses come to this many nats in all leave nothing to be won.
NOTHING_TO_WIN = 1.0


class SearchIsOver(Exception):
    """The message says why."""


def default_candidate(
    recipe: Recipe, *, lift: str, n_planes: int | None = None, relief: float = 0.0
) -> Candidate:
    """The candidate of a lift before anything has been measured."""
    l2 = DEFAULT_L2[lift] if recipe.l2 == "auto" else float(recipe.l2)
    relief = relief if recipe.relief == "auto" else float(recipe.relief)
    gamma_factor = 1.0 if lift == "fourier" else None
    n_knots = None
    if lift == "spline":
        n_knots = KNOTS_OF_ONE_PLANE if recipe.n_knots == "auto" else int(recipe.n_knots)
    weighed = recipe.weigh_columns is True
    return Candidate(lift, l2, gamma_factor, n_planes, relief, n_knots, weighed)


@dataclass(frozen=True)
class Search:
    """Walks from candidate to candidate while the held-out loss falls."""

    folds: list[Fold]
    recipe: Recipe
    watch: Watch | None
    handicap: float
    deadline: Deadline | None = None
    measured: dict[Candidate, Measured] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)  # a sentence for each kind that a probe ruled out

    @property
    def best(self) -> Measured | None:
        """The best so far, of any kind."""
        return min(self.measured.values(), key=lambda m: m.loss, default=None)

    def measure(self, candidate: Candidate) -> Measured:
        if candidate not in self.measured:
            self._go_on_only_if_worth_it()
            beaten = BEATEN_ERRORS if self.handicap == 0.0 else BEATEN_ERRORS_OF_FEW
            self.measured[candidate] = measure(
                candidate, self.folds, self.recipe, self.watch, self.best, beaten
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
        if self.recipe.l2 != "auto":
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

    def finalists(self, lifts: tuple[str, ...]) -> Iterator[Measured]:
        """The best of every kind of model, simple kinds first."""
        if self.recipe.n_planes != "auto":
            for lift in lifts:
                yield from self.given(lift)
            return
        simple = {}
        for lift in lifts:
            found = self.searched(self._first(lift, n_planes=1))
            if found is None:
                continue
            simple[lift] = found
            yield found
            # Of many rows several linear planes take long, and often the others leave them behind.
            if lift == "fourier" or (lift == "linear" and not self._has_many_rows):
                yield from self.by_budget(found)
        if "linear" in simple and self._has_many_rows:
            yield from self.by_budget(simple["linear"])
        if "spline" in simple:
            yield from self.rich(simple["spline"])

    def _first(self, lift: str, *, n_planes: int | None = None, relief: float = 0.0) -> Candidate:
        first = default_candidate(self.recipe, lift=lift, n_planes=n_planes, relief=relief)
        if first.n_knots is None:
            return first
        return replace(first, n_knots=min(first.n_knots, self._most_knots))

    @property
    def _most_knots(self) -> int:
        return self.folds[0].preparation.most_knots

    @property
    def _has_clusters(self) -> bool:
        return bool(self.folds[0].preparation.clusters.planes_per_class.max() > 1)

    def given(self, lift: str) -> Iterator[Measured]:
        """Planes as the user wants them, or as the silhouette says."""
        for relief in self._reliefs if lift == "spline" else (0.0,):
            if (found := self.searched(self._first(lift, relief=relief))) is not None:
                yield found

    def by_budget(self, simple: Measured) -> Iterator[Measured]:
        """As many planes as the silhouette says, where that is not one."""
        if not self._has_clusters:
            return
        if simple.candidate.lift == "linear":
            start = self.measure(default_candidate(self.recipe, lift="linear"))
            is_left = self._has_many_rows and self.is_behind(start, PROMISING)
            yield start if is_left else self.tuned(start)
        # One plane has found the width and penalty already. Several planes take the most time
        # of all, and where they start behind no penalty has brought them forward.
        elif not self.is_behind(simple, PROMISING):
            start = self.measure(replace(simple.candidate, n_planes=None))
            yield start if start.loss >= simple.loss else self.tuned(start)

    def rich(self, simple: Measured) -> Iterator[Measured]:
        """Several spline planes; then more of them while that helps, or else fewer."""
        counts = [n for n in RICH_PLANES if n <= self.recipe.max_planes]
        if not counts:
            return
        first = min(counts[-1], RICH_PLANES[0] if self.handicap > 0.0 else FIRST_OF_MANY_ROWS)
        best = self._several(simple, first)
        if best is None:
            return
        yield best
        if self.is_behind(best, PROMISING_NUMBER):
            return
        more, fewer = [n for n in counts if n > first], [n for n in counts if n < first]
        if self._has_many_rows and PROMISING_NUMBER * best.loss > simple.loss:
            more = []
        for others, l2_factor in ((more, 10.0**-0.5), (fewer[::-1], 10.0**0.5)):
            for n_planes in others:
                other = self._with_planes(best, n_planes, l2_factor)
                if not self._has_many_rows:
                    other = self.best_relief(other)
                    if other.loss < PROMISING_NUMBER * best.loss:
                        other = self.tuned(other)
                if other.loss >= best.loss:
                    break
                best = other
                yield best
            if best.candidate.n_planes != first:
                return

    def _several(self, simple: Measured, n_planes: int) -> Measured | None:
        """So many spline planes, from what one has found; None where they have no chance."""
        several = self._drawn_apart(simple.candidate, n_planes)
        if is_dear(several, self.folds[0]):
            return None
        start = self.measure(several)
        # On few rows the search would find the luckiest of many, and take the longest.
        if self.handicap > 0.0 and start.loss >= simple.loss:
            return None
        start = self.by_tens(start)
        if self.is_hopeless(start):
            return None
        start = self.best_weighing(self.best_relief(start))
        if self.is_behind(start, PROMISING):
            return start
        start = self.best_width(start)
        return start if self._has_many_rows else self.tuned(start)

    def _drawn_apart(self, one: Candidate, n_planes: int) -> Candidate:
        """Several planes with the penalty of one, and fewer knots."""
        if self.recipe.n_knots == "auto" and (one.n_knots or 0) <= KNOTS_OF_ONE_PLANE:
            one = self._with_knots(one, KNOTS_OF_SEVERAL_PLANES)
        weighed = one.weighed or self._may_weigh
        return replace(one, n_planes=n_planes, relief=self._reliefs[0], weighed=weighed)

    def _with_planes(self, best: Measured, n_planes: int, l2_factor: float) -> Measured:
        """Another number of planes. A plane that answers for fewer rows is penalised more
        (usage), which the factor takes back."""
        changed = replace(best.candidate, n_planes=n_planes)
        if self.recipe.l2 == "auto":
            changed = _step(changed, l2_factor) or changed
        return self.measure(changed)

    def refined(self, found: Measured) -> Measured:
        """A spline that was found on fewer rows: its penalty once more, and more planes where it
        has several, which gain most from more rows."""
        best = self.again(found)
        if self.recipe.l2 == "auto":
            best = self.by_half_tens(best)
        if self.recipe.n_planes != "auto" or not found.is_rich:
            return best
        for n_planes in RICH_PLANES:
            if (best.candidate.n_planes or 1) < n_planes <= self.recipe.max_planes:
                other = self._with_planes(best, n_planes, 10.0**-0.5)
                if other.loss >= best.loss:
                    break
                best = other
        return best

    def best_relief(self, start: Measured) -> Measured:
        tried = [self.measure(replace(start.candidate, relief=one)) for one in self._reliefs]
        return min([start, *tried], key=lambda m: m.loss)

    @property
    def _reliefs(self) -> tuple[float, ...]:
        return RELIEFS if self.recipe.relief == "auto" else (float(self.recipe.relief),)

    def searched(self, first: Candidate) -> Measured | None:
        """Width and penalty: a kernel needs its width first, a curve its penalty. None for a kernel
        that some of the rows rule out."""
        if first.lift == "spline":
            plain = self.tuned(self.best_width(self.by_tens(self.measure(first))))
            weighed = self.best_weighing(plain)
            return plain if weighed is plain else self.tuned(weighed)
        found = self._kernel(first) if first.lift == "fourier" else first
        if found is None:
            return None
        start = self.measure(found)
        return start if self.is_behind(start, PROMISING) else self.tuned(start)

    def _kernel(self, first: Candidate) -> Candidate | None:
        """The best kernel; where rows are many, of some of them, or None if it is far behind the
        best of the others there."""
        if not self._has_many_rows:
            return self._best_kernel(first, None).candidate
        thinned = self.folds[0].thinned(ROWS_TO_PROBE, FREQUENCIES_TO_PROBE)
        probe = replace(self, folds=[thinned], measured={})
        # A probe that is over ends itself, and not the search, which may have measured nothing yet.
        with suppress(SearchIsOver):
            rival = None if self.best is None else probe.again(self.best)
            probe._best_kernel(first, rival)
        kernels = [one for one in probe.measured.values() if one.candidate.lift == first.lift]
        if not kernels:
            return None
        kernel = min(kernels, key=lambda m: m.loss)
        best = probe.best or kernel
        if not probe.is_behind(kernel, PROMISING_KERNEL):
            return kernel.candidate
        self.left.append(
            f"Left after {len(kernels)} probes of {probe.folds[0].n_train} rows: {kernel.name}, "
            f"held-out loss {kernel.loss:.4f} there, {best.name} {best.loss:.4f}."
        )
        return None

    def _best_kernel(self, first: Candidate, rival: Measured | None) -> Measured:
        """The kernel's width, and whether its columns are weighed; only the width of one that is
        far behind its rival."""
        wide = self.best_width(self.measure(first))
        if rival is not None and self.is_behind(wide, PROMISING_KERNEL):
            return wide
        weighed = self.best_weighing(wide)
        return wide if weighed is wide else self.best_width(weighed)

    @property
    def _has_many_rows(self) -> bool:
        return self.folds[0].is_thinned

    @property
    def _may_weigh(self) -> bool:
        return self.recipe.weigh_columns == "auto" and self.recipe.l2 == "auto"

    def best_weighing(self, start: Measured) -> Measured:
        """Alike or weighed, whichever is better."""
        if not self._may_weigh:
            return start
        other = self.measure(replace(start.candidate, weighed=not start.candidate.weighed))
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
        if candidate.gamma_factor is not None and self.recipe.gamma == "auto":
            return _step_gamma(candidate, GAMMA_STEP if up else 1.0 / GAMMA_STEP)
        # On few rows the knots are few already, and one more choice would be one too many.
        if candidate.n_knots is None or self.recipe.n_knots != "auto" or self.handicap > 0.0:
            return None
        alone = candidate.n_planes == 1
        low, high = KNOTS_RANGE_OF_ONE_PLANE if alone else KNOTS_RANGE_OF_SEVERAL_PLANES
        high = min(high, self._most_knots)
        n_knots = candidate.n_knots * KNOTS_STEP if up else candidate.n_knots // KNOTS_STEP
        n_knots = min(max(n_knots, low), high)
        return None if n_knots == candidate.n_knots else self._with_knots(candidate, n_knots)

    def _with_knots(self, candidate: Candidate, n_knots: int) -> Candidate:
        """As smooth with other knots: a step of size s costs s^2, K of size s / K cost s^2 / K."""
        assert candidate.n_knots is not None
        n_knots = min(n_knots, self._most_knots)
        changed = replace(candidate, n_knots=n_knots)
        if self.recipe.l2 != "auto":
            return changed
        return _with_l2(changed, candidate.l2 * n_knots / candidate.n_knots)

    def by_tens(self, start: Measured) -> Measured:
        """The penalty stepped by ten, one way then the other, while that helps."""
        best = start
        if self.recipe.l2 != "auto":
            return best
        for factor in (0.1, 10.0):
            while stepped := _step(best.candidate, factor):
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
        steps = [_step(middle.candidate, factor) for factor in (10.0**0.5, 10.0**-0.5)]
        tried = [self.measure(one) for one in steps if one is not None]
        return min([middle, *tried], key=lambda m: m.loss)

    def tuned(self, start: Measured) -> Measured:
        """The penalty stepped by ten, for a spline by less once more, and then as strong as it
        may be on few rows."""
        if self.recipe.l2 != "auto" or self.is_hopeless(start):
            return start
        best = start if start.candidate.lift == "spline" else self.by_tens(start)
        if self.handicap == 0.0:
            return self.by_half_tens(best) if best.candidate.lift == "spline" else best
        chosen = best
        while stepped := _step(chosen.candidate, 10.0):
            stronger = self.measure(stepped)
            if not is_level(stronger, best, PENALTY_HANDICAP * self.handicap):
                break
            chosen = stronger
        return chosen


def _with_l2(candidate: Candidate, l2: float) -> Candidate:
    low, high = L2_RANGE[candidate.lift]
    return replace(candidate, l2=float(f"{min(max(l2, low), high):.6g}"))


def _step(candidate: Candidate, factor: float) -> Candidate | None:
    """The candidate with its penalty multiplied, or None at the end of the range."""
    low, high = L2_RANGE[candidate.lift]
    l2 = float(f"{candidate.l2 * factor:.6g}")  # 1e-6 * 10 is 1e-5, not a neighbour of it
    return replace(candidate, l2=l2) if low <= l2 <= high else None


def _step_gamma(candidate: Candidate, factor: float) -> Candidate | None:
    low, high = GAMMA_FACTOR_RANGE
    stepped = (candidate.gamma_factor or 1.0) * factor
    return replace(candidate, gamma_factor=stepped) if low <= stepped <= high else None
