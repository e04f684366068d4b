"""A candidate: one way to build the model, and the steps from it to its neighbours.

An *axis* is one setting that the race may change (``AXES``). ``step`` moves a candidate along an
axis, up or down, and returns None at the end of the range or where the user gave the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from geomix.core.spline import MOST_KNOTS
from geomix.search.constants import FACTORS, KNOTS, L2, SHRINKAGE
from geomix.training.settings import Settings

FACTOR_STEP = 4.0


@dataclass(frozen=True)
class Candidate:
    """A lift, a penalty, and a number of planes.

    gamma_factor : multiplies the kernel width that the user gave or the median distance suggests;
    n_planes : per class, None for what the user or the silhouette sets;  shrink_to_mean : share
    of the penalty that is taken off a class's mean plane;  n_knots : most knots of a curve;
    adaptive : whether the penalty follows the importance of steps or columns
    (``training/adaptive_penalty.py``);  n_pairs : most pairs of columns with a table of their own
    (``training/interactions.py``);  pair_penalty : multiplies the penalty of those tables;
    learn_lift : what of a Fourier lift is learnt (``training/learnt_lift.py``).
    """

    lift: str
    l2: float
    gamma_factor: float | None = None
    n_planes: int | None = None
    shrink_to_mean: float = 0.0
    n_knots: int | None = None
    adaptive: bool = False
    n_pairs: int = 0
    pair_penalty: float = FACTORS["pair penalty"].start
    learn_lift: str = "off"

    def for_rows(self, n_rows: int, n_before: int) -> Candidate:
        """The same prior beside ``n_rows`` rows, found on ``n_before``: the loss is a mean."""
        return replace(self, l2=self.l2 * n_before / n_rows)

    @property
    def has_adaptive_steps(self) -> bool:
        """Whether the penalty follows the steps of curves, and not columns."""
        return self.adaptive and self.lift == "spline"

    @cached_property
    def any_penalty(self) -> Candidate:
        """What candidates that differ by their penalty alone have in common."""
        return replace(self, l2=0.0)

    @property
    def one_plane(self) -> Candidate:
        """The same with one plane per class, which has the penalty of the mean plane."""
        l2 = self.l2 * (1.0 - self.shrink_to_mean)
        return replace(self, l2=l2, n_planes=1, shrink_to_mean=0.0)

    @property
    def uniform(self) -> Candidate:
        """The same with a uniform penalty."""
        return replace(self, adaptive=False)

    @property
    def name(self) -> str:
        """In a few words, without the number of planes."""
        kind = {"linear": "linear", "spline": "spline", "fourier": "Fourier kernel"}[self.lift]
        pairs = f" with {self.n_pairs} pairs" if self.n_pairs else ""
        penalty = ", adaptive penalty" if self.adaptive else ""
        learnt = "" if self.learn_lift == "off" else f", learnt {self.learn_lift}"
        return f"{kind}{pairs}, l2={self.l2:g}{penalty}{learnt}"


def default_candidate(
    settings: Settings, lift: str, most_knots: int = MOST_KNOTS, n_planes: int | None = None
) -> Candidate:
    """The candidate of a lift before anything has been measured."""
    n_knots = None
    if lift == "spline":
        wanted = (
            int(KNOTS["one plane"].start) if settings.n_knots == "auto" else int(settings.n_knots)
        )
        n_knots = min(wanted, most_knots)
    is_learnt = lift == "fourier" and settings.learn_lift != "auto"
    return Candidate(
        lift,
        L2[lift].start if settings.l2 == "auto" else float(settings.l2),
        FACTORS["gamma"].start if lift == "fourier" else None,
        n_planes,
        0.0 if settings.shrink_to_mean == "auto" else float(settings.shrink_to_mean),
        n_knots,
        settings.adaptive_penalty is True,
        learn_lift=settings.learn_lift if is_learnt else "off",
    )


@dataclass(frozen=True)
class Range:
    """What the rows allow: the most knots, and the counts of planes and pairs of a family."""

    settings: Settings
    most_knots: int
    plane_counts: tuple[int, ...]
    pair_counts: tuple[int, ...]


def with_l2(candidate: Candidate, l2: float) -> Candidate:
    low, high = L2[candidate.lift].low, L2[candidate.lift].high
    # Six digits: 1e-6 * 10 is then 1e-5, and not a neighbour of it.
    return replace(candidate, l2=float(f"{min(max(l2, low), high):.6g}"))


def with_knots(candidate: Candidate, n_knots: int, settings: Settings) -> Candidate:
    """As smooth with other knots: a step of size s costs s^2, K of size s / K cost s^2 / K."""
    assert candidate.n_knots is not None
    changed = replace(candidate, n_knots=n_knots)
    if settings.l2 != "auto":
        return changed
    return with_l2(changed, candidate.l2 * n_knots / candidate.n_knots)


def _step_l2(factor: float) -> Callable[[Candidate, bool, Range], Candidate | None]:
    def step(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
        if within.settings.l2 != "auto":
            return None
        # A weaker penalty is tried first: more rows than the default was made for are common.
        changed = with_l2(candidate, candidate.l2 * (1.0 / factor if up else factor))
        return None if changed.l2 == candidate.l2 else changed

    return step


def _step_knots(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
    if candidate.n_knots is None or within.settings.n_knots != "auto":
        return None
    axis = KNOTS["one plane" if (candidate.n_planes or 1) == 1 else "several planes"]
    wanted = candidate.n_knots * 2 if up else candidate.n_knots // 2
    least, most = min(int(axis.low), candidate.n_knots), max(int(axis.high), candidate.n_knots)
    n_knots = min(max(wanted, least), most, within.most_knots)
    changes = n_knots != candidate.n_knots
    return with_knots(candidate, n_knots, within.settings) if changes else None


def _step_gamma(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
    if candidate.gamma_factor is None or within.settings.gamma != "auto":
        return None
    factor = _stepped("gamma", candidate.gamma_factor, up)
    return None if factor is None else replace(candidate, gamma_factor=factor)


def _step_pair_penalty(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
    if not candidate.n_pairs or within.settings.l2 != "auto":
        return None
    factor = _stepped("pair penalty", candidate.pair_penalty, up)
    return None if factor is None else replace(candidate, pair_penalty=factor)


def _stepped(name: str, factor: float, up: bool) -> float | None:
    factor *= FACTOR_STEP if up else 1.0 / FACTOR_STEP
    return factor if FACTORS[name].low <= factor <= FACTORS[name].high else None


def _toggle_adaptive(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
    settings = within.settings
    is_free = settings.adaptive_penalty == "auto" and settings.l2 == "auto"
    return replace(candidate, adaptive=not candidate.adaptive) if up and is_free else None


def _toggle_learnt(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
    """Learning frequencies takes longer than all other trials of a kernel: only where a user asks
    for the most accurate model."""
    settings = within.settings
    is_free = settings.learn_lift == "auto" and settings.preset == "accurate"
    if not up or not is_free:
        return None
    is_off = candidate.learn_lift == "off"
    return replace(candidate, learn_lift="frequencies" if is_off else "off")


def _toggle_shrinkage(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
    if not up or within.settings.shrink_to_mean != "auto":
        return None
    return replace(candidate, shrink_to_mean=0.0 if candidate.shrink_to_mean else SHRINKAGE)


def _step_planes(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
    """Another number of planes. A plane that answers for fewer rows is penalised more (usage),
    which the factor on the penalty takes back."""
    assert candidate.n_planes is not None
    changed = _next(within.plane_counts, candidate.n_planes, up)
    if changed is None:
        return None
    moved = replace(candidate, n_planes=changed)
    if within.settings.l2 != "auto" or candidate.lift != "spline":
        return moved
    return with_l2(moved, moved.l2 * 10.0 ** (-0.5 if up else 0.5))


def _step_pairs(candidate: Candidate, up: bool, within: Range) -> Candidate | None:
    changed = _next(within.pair_counts, candidate.n_pairs, up)
    return None if changed is None else replace(candidate, n_pairs=changed)


def _next(counts: tuple[int, ...], now: int, up: bool) -> int | None:
    others = [n for n in counts if (n > now if up else n < now)]
    return (min(others) if up else max(others)) if others else None


AXES: dict[str, Callable[[Candidate, bool, Range], Candidate | None]] = {
    "l2": _step_l2(10.0),
    "l2, fine": _step_l2(10.0**0.5),
    "knots": _step_knots,
    "gamma": _step_gamma,
    "adaptive": _toggle_adaptive,
    "learnt": _toggle_learnt,
    "shrinkage": _toggle_shrinkage,
    "planes": _step_planes,
    "pairs": _step_pairs,
    "pair penalty": _step_pair_penalty,
}
