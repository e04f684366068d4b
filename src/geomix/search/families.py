"""The families of models that race, from simple to rich.

A family starts from the best candidate of its parent, or from the default of its lift, and walks
along its axes. ``coarse`` axes are walked on the first rung, ``fine`` ones on every later rung,
``last`` ones at the end, where the family is still in the race.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from geomix.search.candidates import (
    Candidate,
    default_candidate,
    with_knots,
)
from geomix.search.constants import KNOTS, SHRINKAGE
from geomix.training.settings import Settings


@dataclass(frozen=True)
class Family:
    """name : for people;  presets : that race it;  parent : whose best candidate it starts from;
    plane_counts, pair_counts : what it may have, the first of each is where it starts;
    last : axes that are walked after the last comparison, beside the budget."""

    name: str
    lift: str
    presets: tuple[str, ...]
    coarse: tuple[str, ...]
    fine: tuple[str, ...]
    parent: str | None = None
    plane_counts: tuple[int, ...] = (1,)
    pair_counts: tuple[int, ...] = (0,)
    last: tuple[str, ...] = ()

    @property
    def has_several_planes(self) -> bool:
        return max(self.plane_counts) > 1

    @property
    def has_pairs(self) -> bool:
        return max(self.pair_counts) > 0

    def start(self, settings: Settings, most_knots: int, parent: Candidate | None) -> Candidate:
        """Where the family enters the race."""
        n_planes = self.plane_counts[0] if settings.n_planes in ("auto", 1) else None
        if parent is None:
            return default_candidate(settings, self.lift, most_knots, n_planes)
        start = replace(parent, n_planes=n_planes, n_pairs=self.pair_counts[0])
        if self.lift == "spline" and self.has_several_planes and not parent.shrink_to_mean:
            start = _for_several_planes(start, settings, fewer_knots=not start.n_pairs)
        return start


def _for_several_planes(start: Candidate, settings: Settings, *, fewer_knots: bool) -> Candidate:
    """The penalty of one plane, fewer knots, planes that shrink to their mean."""
    n_knots = int(KNOTS["several planes"].start)
    if fewer_knots and settings.n_knots == "auto" and (start.n_knots or 0) > n_knots:
        start = with_knots(start, n_knots, settings)
    if settings.shrink_to_mean == "auto":
        start = replace(start, shrink_to_mean=SHRINKAGE)
    if settings.adaptive_penalty == "auto" and settings.l2 == "auto":
        start = replace(start, adaptive=True)
    return start


EVERY, ALL, RICH = ("readable", "accurate", "fast"), ("readable", "accurate"), ("accurate",)
SPLINE_FINE = ("knots", "adaptive", "l2, fine")
PAIRS_COARSE = ("pair penalty", "l2", "adaptive", "pairs", "l2, fine")
PAIRS_FINE = ("pair penalty", *SPLINE_FINE)
SEVERAL_COARSE = ("l2", "shrinkage", "planes", "l2, fine")
SEVERAL_FINE = ("l2, fine", "planes", "knots")

# Models of one plane per class first: their curves are exact, and a sum of curves is easier to read
# than planes of which each row uses another. Several planes with pairs have the most weights: they
# come last, and use what the others leave of the budget.
FAMILIES = (
    Family("linear", "linear", ALL, ("l2",), ("l2",)),
    Family("spline", "spline", EVERY, ("l2", "adaptive", "knots", "l2, fine"), SPLINE_FINE),
    Family(
        "spline with pairs", "spline", ALL, PAIRS_COARSE, PAIRS_FINE,
        parent="spline", pair_counts=(10, 4),
    ),
    Family(
        "several linear planes", "linear", ALL, ("planes", "l2"), ("planes", "l2"),
        parent="linear", plane_counts=(3, 2, 6, 12),
    ),
    Family(
        "several spline planes", "spline", ALL, SEVERAL_COARSE, SEVERAL_FINE,
        parent="spline", plane_counts=(2, 3, 4),
    ),
    Family(
        "kernel", "fourier", RICH, ("gamma", "adaptive", "gamma", "l2"), ("l2",),
        last=("learnt",),
    ),
    Family(
        "many spline planes", "spline", RICH, SEVERAL_COARSE, SEVERAL_FINE,
        parent="several spline planes", plane_counts=(12, 8, 32),
    ),
    Family(
        "several spline planes with pairs", "spline", ALL, SEVERAL_COARSE, SEVERAL_FINE,
        parent="spline with pairs", plane_counts=(2, 3, 4), pair_counts=(10, 4),
    ),
)  # fmt: skip


def racing(settings: Settings, lifts: tuple[str, ...]) -> list[Family]:
    """The families that the settings leave in the race, simple ones first."""
    found, by_hand = [], _by_hand(settings, lifts)
    for family in FAMILIES:
        if family.lift not in lifts or settings.preset not in family.presets + by_hand:
            continue
        if settings.n_planes not in ("auto", 1) or settings.preset == "fast":
            if not family.has_several_planes and not family.has_pairs:
                found.append(_given(family, settings))
            continue
        if (kept := _within(family, settings)) is not None:
            found.append(kept)
    return found


def _given(family: Family, settings: Settings) -> Family:
    """The family with planes as the user gives them, or without any choice."""
    if settings.preset == "fast":
        return replace(family, coarse=(), fine=())
    if family.lift != "spline":
        return family
    return replace(family, coarse=("l2", "shrinkage", *family.coarse[1:]))


def _by_hand(settings: Settings, lifts: tuple[str, ...]) -> tuple[str, ...]:
    """A lift that the user names, or the only one that the rows allow, races in every preset."""
    return () if settings.lift == "auto" and len(lifts) > 1 else (settings.preset,)


def _within(family: Family, settings: Settings) -> Family | None:
    """The family with the counts that the settings allow; None if none is left."""
    most = 1 if settings.n_planes == 1 else settings.most_planes(family.lift)
    planes = tuple(n for n in family.plane_counts if n <= most)
    pairs = family.pair_counts
    if family.has_pairs:
        pairs = tuple(sorted({min(n, settings.most_pairs) for n in pairs} - {0}, reverse=True))
    return replace(family, plane_counts=planes, pair_counts=pairs) if planes and pairs else None
