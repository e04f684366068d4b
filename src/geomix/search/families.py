"""The search: which candidates are tried, and in which order.

From simple to rich: linear with one plane per class, linear with the budget's planes, spline with
one, Fourier with one, Fourier with the budget's, spline with several. Each looks for its penalty
by steps of ten (``search/neighbours.py``); the last four are tried alike and adaptive
(``training/adaptive_penalty.py``). What is far behind is not searched further.

Of many rows some are searched on, with fewer trials: kernels are probed on fewer still, and what a
spline has found is settled on more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from geomix.search.folds import Candidate
from geomix.search.neighbours import SearchIsOver, Walk, step
from geomix.search.trials import Measured, exceeds_budget
from geomix.training.settings import Settings

# The penalty to start from, per lift.
DEFAULT_L2 = {"linear": 1e-4, "spline": 1e-3, "fourier": 1e-5}
# Most knots of a curve, to start from: the curves of several planes share the work.
KNOTS_OF_ONE_PLANE = 64
KNOTS_OF_SEVERAL_PLANES = 32
# Spline planes per class that are tried beside one, and with which of them the search begins but
# for few rows, where it begins with the fewest.
RICH_PLANES = (4, 12, 32)
FIRST_OF_SEVERAL = 12
# But for few rows what is within this factor of the best is searched further: the number of several
# planes; their penalty and knots, and those of a kernel that has its width.
PROMISING_NUMBER = 1.02
PROMISING = 1.05
# Where rows are many, kernel widths are compared on so many of those that are searched on.
ROWS_TO_PROBE = 5000
FREQUENCIES_TO_PROBE = 256
# A kernel that is behind the best of the others by this factor there is not tried on more.
PROMISING_KERNEL = 1.03


def default_candidate(
    settings: Settings, *, lift: str, n_planes: int | None = None, shrink_to_mean: float = 0.0
) -> Candidate:
    """The candidate of a lift before anything has been measured."""
    l2 = DEFAULT_L2[lift] if settings.l2 == "auto" else float(settings.l2)
    shrink_to_mean = (
        shrink_to_mean if settings.shrink_to_mean == "auto" else float(settings.shrink_to_mean)
    )
    gamma_factor = 1.0 if lift == "fourier" else None
    n_knots = None
    if lift == "spline":
        n_knots = KNOTS_OF_ONE_PLANE if settings.n_knots == "auto" else int(settings.n_knots)
    adaptive = settings.adaptive_penalty is True
    return Candidate(lift, l2, gamma_factor, n_planes, shrink_to_mean, n_knots, adaptive)


@dataclass(frozen=True)
class Search(Walk):
    """Walks through the kinds of model. left : a sentence for each that a probe ruled out."""

    left: list[str] = field(default_factory=list)

    def finalists(self, lifts: tuple[str, ...]) -> Iterator[Measured]:
        """The best of every kind of model, simple kinds first."""
        if self.settings.n_planes != "auto":
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
            if lift == "fourier" or (lift == "linear" and not self.has_many_rows):
                yield from self.by_budget(found)
        if "linear" in simple and self.has_many_rows:
            yield from self.by_budget(simple["linear"])
        if "spline" in simple:
            yield from self.rich(simple["spline"])

    def _first(
        self, lift: str, *, n_planes: int | None = None, shrink_to_mean: float = 0.0
    ) -> Candidate:
        first = default_candidate(
            self.settings, lift=lift, n_planes=n_planes, shrink_to_mean=shrink_to_mean
        )
        if first.n_knots is None:
            return first
        return replace(first, n_knots=min(first.n_knots, self.most_knots))

    @property
    def _has_clusters(self) -> bool:
        return bool(self.folds[0].preparation.clusters.planes_per_class.max() > 1)

    def given(self, lift: str) -> Iterator[Measured]:
        """Planes as the user wants them, or as the silhouette says."""
        for shrink_to_mean in self.shrinkages if lift == "spline" else (0.0,):
            if (
                found := self.searched(self._first(lift, shrink_to_mean=shrink_to_mean))
            ) is not None:
                yield found

    def by_budget(self, simple: Measured) -> Iterator[Measured]:
        """As many planes as the silhouette says, where that is not one."""
        if not self._has_clusters:
            return
        if simple.candidate.lift == "linear":
            start = self.measure(default_candidate(self.settings, lift="linear"))
            is_left = self.has_many_rows and self.is_behind(start, PROMISING)
            yield start if is_left else self.tuned(start)
        # One plane has found the width and penalty already. Several planes take the most time
        # of all, and where they start behind no penalty has brought them forward.
        elif not self.is_behind(simple, PROMISING):
            start = self.measure(replace(simple.candidate, n_planes=None))
            yield start if start.loss >= simple.loss else self.tuned(start)

    def rich(self, simple: Measured) -> Iterator[Measured]:
        """Several spline planes; then more of them while that helps, or else fewer."""
        counts = [n for n in RICH_PLANES if n <= self.settings.most_planes]
        if not counts:
            return
        first = min(counts[-1], RICH_PLANES[0] if self.handicap > 0.0 else FIRST_OF_SEVERAL)
        best = self._several(simple, first)
        if best is None:
            return
        yield best
        if self.is_behind(best, PROMISING_NUMBER):
            return
        more, fewer = [n for n in counts if n > first], [n for n in counts if n < first]
        if self.has_many_rows and PROMISING_NUMBER * best.loss > simple.loss:
            more = []
        for others, l2_factor in ((more, 10.0**-0.5), (fewer[::-1], 10.0**0.5)):
            for n_planes in others:
                other = self._with_planes(best, n_planes, l2_factor)
                if not self.has_many_rows:
                    other = self.best_shrinkage(other)
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
        several = self._split_planes(simple.candidate, n_planes)
        if exceeds_budget(several, self.folds[0]):
            return None
        start = self.measure(several)
        # On few rows the search would find the luckiest of many, and take the longest.
        if self.handicap > 0.0 and start.loss >= simple.loss:
            return None
        start = self.by_tens(start)
        if self.is_hopeless(start):
            return None
        start = self.best_penalty_kind(self.best_shrinkage(start))
        if self.is_behind(start, PROMISING):
            return start
        start = self.best_width(start)
        return start if self.has_many_rows else self.tuned(start)

    def _split_planes(self, one: Candidate, n_planes: int) -> Candidate:
        """Several planes with the penalty of one, and fewer knots."""
        if self.settings.n_knots == "auto" and (one.n_knots or 0) <= KNOTS_OF_ONE_PLANE:
            one = self.with_knots(one, KNOTS_OF_SEVERAL_PLANES)
        adaptive = one.adaptive or self.may_adapt
        return replace(one, n_planes=n_planes, shrink_to_mean=self.shrinkages[0], adaptive=adaptive)

    def _with_planes(self, best: Measured, n_planes: int, l2_factor: float) -> Measured:
        """Another number of planes. A plane that answers for fewer rows is penalised more
        (usage), which the factor takes back."""
        changed = replace(best.candidate, n_planes=n_planes)
        if self.settings.l2 == "auto":
            changed = step(changed, l2_factor) or changed
        return self.measure(changed)

    def refined(self, found: Measured) -> Measured:
        """A spline that was found on fewer rows: its penalty once more, and more planes where it
        has several, which gain most from more rows."""
        best = self.again(found)
        if self.settings.l2 == "auto":
            best = self.by_half_tens(best)
        if self.settings.n_planes != "auto" or not found.is_rich:
            return best
        for n_planes in RICH_PLANES:
            if (best.candidate.n_planes or 1) < n_planes <= self.settings.most_planes:
                other = self._with_planes(best, n_planes, 10.0**-0.5)
                if other.loss >= best.loss:
                    break
                best = other
        return best

    def searched(self, first: Candidate) -> Measured | None:
        """Width and penalty: a kernel needs its width first, a curve its penalty. None for a kernel
        that some of the rows rule out."""
        if first.lift == "spline":
            plain = self.tuned(self.best_width(self.by_tens(self.measure(first))))
            adaptive = self.best_penalty_kind(plain)
            return plain if adaptive is plain else self.tuned(adaptive)
        found = self._kernel(first) if first.lift == "fourier" else first
        if found is None:
            return None
        start = self.measure(found)
        return start if self.is_behind(start, PROMISING) else self.tuned(start)

    def _kernel(self, first: Candidate) -> Candidate | None:
        """The best kernel; where rows are many, of some of them, or None if it is far behind the
        best of the others there."""
        if not self.has_many_rows:
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
        """The kernel's width, and whether its columns are adaptive; only the width of one that is
        far behind its rival."""
        wide = self.best_width(self.measure(first))
        if rival is not None and self.is_behind(wide, PROMISING_KERNEL):
            return wide
        adaptive = self.best_penalty_kind(wide)
        return wide if adaptive is wide else self.best_width(adaptive)
