"""From trained planes to those of the model: spare planes go, curves are calmed, T is fitted.

Models get a share of other models of the race (``search/blend.py``) and lose the small changes of
direction of their curves (``training/calm_curves.py``); those to be read also lose the planes that
a class does not need (``training/spare_planes.py``). How calm, how much of the other models, and
the temperature, are decided on validation rows: by the fits of the winner at the end of the race
where they were kept. Otherwise the winner is trained once more on five folds, or on the last rung
of the race where that would take too long. The members of an ensemble are finished in the same way,
and get their temperature from the rows held out of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.core import kernel
from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.core.calm import KnotMasses
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes, ensemble
from geomix.search.blend import blended, choose_shares, penalty_of_blend, train_other
from geomix.search.candidates import Candidate
from geomix.search.choosing import Chosen
from geomix.search.constants import CALM
from geomix.search.fitted import Fitted, Watch
from geomix.search.folds import Fold, pooled, train_further, train_on_fold
from geomix.search.parallel import in_order, n_threads
from geomix.search.shares import Share
from geomix.search.splits import Folds
from geomix.training.calm_curves import calmed, calmed_at, knot_masses
from geomix.training.history import Log
from geomix.training.settings import Settings
from geomix.training.spare_planes import without_spare_planes
from geomix.training.state import TrainingState


@dataclass(frozen=True, eq=False)
class Members:
    """The trained members of a model (mostly one), their folds, and the rows held out of each."""

    fits: list[Fitted]
    folds: list[Fold]
    held_out: list[IntArray]

    @property
    def is_ensemble(self) -> bool:
        return bool(self.held_out)


@dataclass(frozen=True)
class Finish:
    """What the validation rows decide about the final planes."""

    temperature: float
    tolerance: float = 0.0
    shares: Sequence[Share] = ()

    @property
    def notes(self) -> Iterator[str]:
        yield from (one.note for one in self.shares)
        if self.tolerance > 0.0:
            yield (
                f"Changes of direction of up to {self.tolerance:g} were removed from the curves."
            )


def decide(chosen: Chosen, folds: Folds, watch: Watch | None) -> Finish:
    """Temperature, calmness and the shares of other models, before the final training."""
    settings = folds.task.settings
    # Rows held out of the final training set the temperature later.
    is_later = folds.task.holds_out_for_calibration
    if not chosen.is_measured or (is_later and chosen.candidate.lift != "spline"):
        return Finish(chosen.temperature)
    checked = _checked_fits(chosen, folds, watch)
    if not checked:
        return Finish(chosen.temperature)
    folds.task.give_back_memory()
    y, weight = pooled([fold for fold, _ in checked])
    shares, fits = choose_shares(chosen, checked, settings)
    S = [one.held_out_scores(settings.sharpness) for one in fits]
    plain = _calibrated(S, 0.0, y, weight, settings)
    found = plain[0]
    if fits[0].features.feature_map.lift.kind == "spline":
        found = _calmest(fits, plain, y, weight, settings, _monotone_columns(folds))
    return replace(found, shares=shares)


def _monotone_columns(folds: Folds) -> frozenset[int]:
    return frozenset(one.column for one in folds.task.directions)


def _checked_fits(chosen: Chosen, folds: Folds, watch: Watch | None) -> list[tuple[Fold, Fitted]]:
    """The winner as it would be finished, trained without the rows that validate it."""
    settings = folds.task.settings
    kept = [] if chosen.kept is None else list(zip(*chosen.kept[:2], strict=True))
    if len(kept) < folds.n_to_check(chosen.operations) or not folds.task.refit:
        if chosen.n_members > 1:
            return []
        check = folds.to_check(chosen.operations)
        threads = 1 if watch else n_threads(settings.n_jobs)

        def train(fold: Fold) -> Fitted:
            candidate = chosen.for_rows(fold.n_train)
            return train_on_fold(candidate, fold, settings, watch, "choose", settings.max_iter)

        kept = list(zip(check, in_order(train, check, threads), strict=True))
    return [
        (fold, _pruned(fitted, chosen.for_rows(fold.n_train), fold, settings, "choose"))
        for fold, fitted in ((fold, one.with_rows_of(fold.preparation)) for fold, one in kept)
    ]


def _calmest(
    fits: list[Fitted],
    plain: tuple[Finish, float],
    y: IntArray,
    weight: FloatArray,
    settings: Settings,
    left_out: frozenset[int],
) -> Finish:
    """The largest tolerance whose validation loss is within the price of the smallest one."""
    masses = [knot_masses(one.train, left_out) for one in fits]
    tried = [plain]
    for tolerance in CALM.tolerances:
        S = [_calm_scores(*one, tolerance, settings) for one in zip(fits, masses, strict=True)]
        tried.append(_calibrated(S, tolerance, y, weight, settings))
    most = (1.0 + CALM.price[settings.preset]) * min(loss for _, loss in tried)
    return [found for found, loss in tried if loss <= most][-1]


def _calibrated(
    S: list[FloatArray], tolerance: float, y: IntArray, weight: FloatArray, settings: Settings
) -> tuple[Finish, float]:
    """The temperature of the validation scores at a tolerance, and the loss with it."""
    temperature, loss = kernel.calibrate(np.concatenate(S), y, weight, PRIOR_SCALE)
    if not settings.calibrate:
        temperature = 1.0
    return Finish(float(temperature), tolerance), float(loss)


def _calm_scores(
    fitted: Fitted, masses: KnotMasses, tolerance: float, settings: Settings
) -> FloatArray:
    """Scores of the validation rows with calmed curves."""
    over_the_lift = fitted.features.expanded(fitted.trained.planes)
    planes = fitted.features.working(calmed_at(over_the_lift, masses, tolerance))
    assert fitted.valid is not None
    return fitted.valid.prepared.class_scores(planes, settings.sharpness)


class Finished(NamedTuple):
    """What the model is made of: its features, its planes over the lift's own features, and its
    temperature. ``state`` is for a warm start."""

    feature_map: FeatureMap
    planes: Planes
    temperature: float
    state: TrainingState


def finish(
    members: Members, state: TrainingState, chosen: Chosen, decided: Finish, folds: Folds, log: Log
) -> Finished:
    """The end of the final training, as it was decided before."""
    settings = folds.task.settings
    log.notes.extend(decided.notes)
    if members.is_ensemble:
        return _finished_ensemble(members, state, decided, folds)
    fitted = members.fits[0]
    if settings.preset != "accurate":
        fitted = _pruned(fitted, chosen.candidate, folds.final, settings, "fit")
        gone = members.fits[0].trained.planes.n_planes - fitted.trained.planes.n_planes
        if gone:
            log.notes.append(f"{gone} planes were removed: idle, or copies of another plane.")
    if decided.shares:
        before, fitted = fitted, _blended(fitted, decided.shares, folds.final, settings)
        state = penalty_of_blend(state, before, fitted, decided.shares)
    fitted, planes = _calm(fitted, decided.tolerance, folds)
    temperature = decided.temperature
    if fitted.valid is not None and settings.calibrate:
        temperature = _temperature(fitted, settings)
    return Finished(fitted.features.feature_map, planes, temperature, state)


def _finished_ensemble(
    members: Members, state: TrainingState, decided: Finish, folds: Folds
) -> Finished:
    """Every member with a share of the other models, trained on the rows of that member."""
    settings, fits = folds.task.settings, members.fits
    if decided.shares:
        parts = zip(fits, members.folds, strict=True)
        fits = [_blended(one, decided.shares, fold, settings) for one, fold in parts]
    calm = [_calm(one, decided.tolerance, folds) for one in fits]
    members = replace(members, fits=[fitted for fitted, _ in calm])
    temperature = _temperature_of_members(members, settings) if settings.calibrate else 1.0
    planes = ensemble([planes for _, planes in calm])
    return Finished(fits[0].features.feature_map, planes, temperature, state)


def _calm(fitted: Fitted, tolerance: float, folds: Folds) -> tuple[Fitted, Planes]:
    """A fit without changes of direction up to the tolerance, and its planes over the lift."""
    planes = fitted.features.expanded(fitted.trained.planes)
    if tolerance == 0.0:
        return fitted, planes
    planes = calmed(planes, fitted.train, tolerance, _monotone_columns(folds))
    trained = replace(fitted.trained, planes=fitted.features.working(planes))
    return replace(fitted, trained=trained), planes


def _blended(fitted: Fitted, shares: Sequence[Share], fold: Fold, settings: Settings) -> Fitted:
    others = [(train_other(one.of, fold, settings, "fit"), one.share) for one in shares]
    return blended(fitted, others, fold)


def _pruned(
    fitted: Fitted, candidate: Candidate, fold: Fold, settings: Settings, phase: str
) -> Fitted:
    """Without planes that the class does not need, and trained further where some went."""
    if settings.preset == "accurate" or settings.n_planes != "auto":
        return fitted
    kept = without_spare_planes(fitted.trained.planes, fitted.train, settings.sharpness)
    if kept.n_planes == fitted.trained.planes.n_planes:
        return fitted
    return train_further(fitted, kept, candidate, fold, settings, phase)


def _temperature(fitted: Fitted, settings: Settings) -> float:
    """From the validation rows of the final planes."""
    assert fitted.valid is not None
    scores = fitted.held_out_scores(settings.sharpness)
    return fit_temperature(scores, fitted.valid.y, fitted.valid.weight, PRIOR_SCALE)


def _temperature_of_members(members: Members, settings: Settings) -> float:
    """From every row, scored by the member that was trained without it."""
    rows = [
        one.features.rows.take(index)
        for one, index in zip(members.fits, members.held_out, strict=True)
    ]
    S = np.concatenate(
        [
            part.prepared.class_scores(one.trained.planes, settings.sharpness)
            for one, part in zip(members.fits, rows, strict=True)
        ]
    )
    y = np.concatenate([part.y for part in rows])
    return fit_temperature(S, y, np.concatenate([part.weight for part in rows]), PRIOR_SCALE)
