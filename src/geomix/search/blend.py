"""A blend: models of one plane per class that raced, added to the planes of the winner.

    z'_cm(x) = z_cm(x) + sum_f share_f z_cf(x),      s'_c(x) = s_c(x) + sum_f share_f z_cf(x)

Lines, curves and tables add up to lines, curves and tables. The shares are chosen by the validation
scores (``shares.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.joined_splines import joined, over, units_over
from geomix.core.planes import Planes
from geomix.core.spline import SplineLift
from geomix.search.choosing import Chosen
from geomix.search.fitted import Fitted
from geomix.search.folds import Fold, pooled, train_on_fold
from geomix.search.shares import Other, Share, ValidationRows, as_addition, best_shares
from geomix.training.features import Features
from geomix.training.settings import Settings
from geomix.training.state import TrainingState
from geomix.training.straight_lines import as_curves, with_shared_plane


def choose_shares(
    chosen: Chosen, checked: Sequence[tuple[Fold, Fitted]], settings: Settings
) -> tuple[list[Share], list[Fitted]]:
    """What is added to the winner, and its fits with that. Nothing unless it clearly pays."""
    folds, fits = zip(*checked, strict=True)
    if not settings.calibrate or chosen.candidate.lift == "fourier":
        return [], list(fits)
    made, additions = {}, []
    for other, some, scores in _fits_of_others(chosen, list(folds), settings):
        made[other] = some
        is_ensemble = chosen.n_members > 1
        one = as_addition(other, scores, chosen.candidate, settings, is_ensemble=is_ensemble)
        additions.append(one)
    S = np.concatenate([one.held_out_scores(settings.sharpness) for one in fits])
    shares, _ = best_shares(S, additions, ValidationRows(*pooled(list(folds)), settings))
    if not shares:
        return [], list(fits)
    added = [[(made[one.of][k], one.share) for one in shares] for k in range(len(folds))]
    return [one.without_fits() for one in shares], [
        blended(*one) for one in zip(fits, added, folds, strict=True)
    ]


def _fits_of_others(
    chosen: Chosen, folds: list[Fold], settings: Settings
) -> Iterator[tuple[Other, list[Fitted], FloatArray]]:
    """The other models on the folds of the winner, each with its scores: as they were compared with
    it there. The linear model is trained again where it was not, which costs little."""
    for other in chosen.others:
        if other.kept is not None and other.kept.folds == folds:
            yield other, other.kept.fits, other.kept.scores
        elif other.measured.candidate.lift == "linear":
            again = [_trained_again(other, fold, settings) for fold in folds]
            yield other, [one for one, _ in again], np.concatenate([S for _, S in again])


def _trained_again(other: Other, fold: Fold, settings: Settings) -> tuple[Fitted, FloatArray]:
    """A fit without its rows, which are wide under a linear lift, and its validation scores."""
    fitted = train_other(other, fold, settings, "choose")
    fold.forget()
    return fitted.without_rows(), fitted.held_out_scores(settings.sharpness)


def train_other(other: Other, fold: Fold, settings: Settings, phase: str) -> Fitted:
    """Another model of the race, trained on a fold."""
    candidate = other.measured.candidate
    if settings.l2 == "auto":
        candidate = candidate.for_rows(fold.n_train, other.measured.n_rows)
    return train_on_fold(candidate, fold, settings, None, phase, settings.max_iter)


def blended(fitted: Fitted, additions: Sequence[tuple[Fitted, float]], fold: Fold) -> Fitted:
    """The fit with ``share`` times the plane that each addition has for a class."""
    features = _joint_features([fitted, *(one for one, _ in additions)], fold)
    planes = _over(fitted, features)
    for addition, share in additions:
        planes = with_shared_plane(planes, _over(addition, features), share)
    train, valid = fitted.train, fitted.valid
    if features is not fitted.features:
        train, valid = fold.parts(features)
    trained = replace(fitted.trained, planes=features.working(planes))
    return replace(fitted, features=features, train=train, valid=valid, trained=trained)


def _joint_features(fits: Sequence[Fitted], fold: Fold) -> Features:
    """Features that every one of the fits can be written in: its own for the first, where the
    others have no curves or tables; else those of a joined lift."""
    lifts = [lift for one in fits if isinstance(lift := _lift(one), SplineLift)]
    if not lifts or (len(lifts) == 1 and lifts[0] is _lift(fits[0])):
        return fits[0].features
    rows = fold.preparation.encoded
    lift = lifts[0] if len(lifts) == 1 else joined(lifts, rows.X, rows.weight)
    return fold.preparation.features_of(lift)


def _over(fitted: Fitted, features: Features) -> Planes:
    """The planes of a fit over the lift's own features of ``features``."""
    planes, lift = fitted.features.expanded(fitted.trained.planes), features.feature_map.lift
    own = _lift(fitted)
    if own is lift or not isinstance(lift, SplineLift):
        return planes
    if isinstance(own, SplineLift):
        return over(planes, own, lift)
    return as_curves(planes, fitted.features.feature_map, lift)


def _lift(fitted: Fitted) -> object:
    return fitted.features.feature_map.lift


def penalty_of_blend(
    state: TrainingState, before: Fitted, after: Fitted, shares: Sequence[Share]
) -> TrainingState:
    """The penalty with which a warm start goes on: the winner's, or that of the first model with
    curves where the winner had none."""
    own, lift = _lift(before), _lift(after)
    if own is lift or not isinstance(lift, SplineLift):
        return state
    if isinstance(own, SplineLift):
        return replace(state, units=units_over(state.units, own, lift))
    measured = next(one.of.measured for one in shares if one.of.measured.candidate.lift == "spline")
    l2 = measured.candidate.for_rows(len(after.train), measured.n_rows).l2
    return replace(state, l2=l2, units=None)
