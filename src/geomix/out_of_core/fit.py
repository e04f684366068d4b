"""A fit that never has all rows in memory: survey, search on a sample, L-BFGS over sums.

    survey   one pass over all rows: columns, levels, classes, moments, a sample
    search   candidates compete on the sample, as in any fit; the winner is trained there
    descend  L-BFGS over sums of all rows, from those planes, with the usage penalty of each stage
    calibrate  the temperature by rows of the sample that search and training have not seen

The result is an ordinary ``GeometricMixture``. A ``Source`` gives access to the rows: files, a
cluster, arrays on a device. Repeated rows are not merged, and no ensemble is trained.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from geomix.arrays import FloatArray, IntArray
from geomix.core.planes import Planes
from geomix.core.row_sums import PartSums, Remembered, Sums, tree_sum
from geomix.errors import InvalidParameterError
from geomix.out_of_core.held_out import HeldOut, divide, with_sample
from geomix.out_of_core.part_reader import PartReader, known_from, part_reader_of
from geomix.out_of_core.sampling import as_labels
from geomix.out_of_core.survey import RowPart, Survey, survey_part, with_factors
from geomix.search.assembly import FitResult, Target, assemble
from geomix.search.fit import SampleFit, fit_sample, watch_until
from geomix.search.fitted import Snapshot, Watch
from geomix.search.splits import task_of
from geomix.table.check import TableCheck, check_sample
from geomix.table.columns import labels_of, missing_error
from geomix.table.labels import class_weight_factors, unitless
from geomix.table.row_views import all_rows
from geomix.training.data_checks import warn_about
from geomix.training.deadline import Deadline
from geomix.training.history import Log, Record
from geomix.training.loop import train_on_sums
from geomix.training.progress import ProgressLine
from geomix.training.rows import ColumnRange, Rows
from geomix.training.run import Trained
from geomix.training.settings import Settings
from geomix.training.state import TrainingState


class Source(Protocol):
    """Access to the rows. ``sums`` is entered once, for all passes of the training.

    is_exact : whether sums have to be the same however the rows are cut into parts.
    factor_of : of ``survey``, a factor on the weights of the rows of each label.
    """

    @property
    def is_exact(self) -> bool: ...

    def survey(
        self, seed: int, categorical_features: Any, factor_of: Mapping[Any, float] | None = None
    ) -> Survey: ...

    def sums(self, reader: PartReader) -> AbstractContextManager[Sums]: ...


@dataclass(frozen=True, eq=False)
class MemorySource:
    """Rows in memory, in parts: the reference for all other sources."""

    parts: list[RowPart]
    is_exact: bool = True

    def survey(
        self, seed: int, categorical_features: Any, factor_of: Mapping[Any, float] | None = None
    ) -> Survey:
        offsets = np.cumsum([0, *map(len, self.parts)])
        parts = (with_factors(part, factor_of) for part in self.parts)
        pairs = zip(parts, offsets.tolist(), strict=False)
        return tree_sum(survey_part(part, at, seed, categorical_features) for part, at in pairs)

    def sums(self, reader: PartReader) -> AbstractContextManager[Sums]:
        stored = [one for part in self.parts if len(part) and len(one := reader.stored(part))]
        return nullcontext(
            PartSums(lambda: (block for one in stored for block in reader.blocks(one)))
        )


def fit_out_of_core(
    source: Source,
    settings: Settings,
    seed: int,
    *,
    class_weight: Callable[[Survey], FloatArray | None] = lambda survey: None,
    check: Callable[[Survey], None] = lambda survey: None,
    categorical_features: Any = None,
    watch: Watch | None = None,
) -> tuple[FitResult, Survey]:
    """Train a model on the rows of a source.

    ``check`` raises an error for a survey that cannot be fitted; ``class_weight`` returns the
    factors of the classes.
    """
    settings = out_of_core_settings(settings)
    deadline = None if settings.time_limit is None else Deadline.after(settings.time_limit)
    watch = watch_until(deadline, watch)
    survey = source.survey(seed, categorical_features)
    _check_classes(survey)
    check(survey)
    weights = class_weight(survey)
    if weights is not None:
        # Means, scales and levels depend on the weights, so the rows are surveyed again with them.
        factor_of = dict(zip(survey.classes.labels.tolist(), weights.tolist(), strict=True))
        survey = source.survey(seed, categorical_features, factor_of)
    division = divide(survey)
    searched = with_sample(survey, division.searched)
    sample = _sample_rows(searched)
    classes, schema, log = survey.classes, survey.schema, Log()
    task = task_of(sample, schema, classes.labels, settings, seed, None, None)
    task = replace(task, known=known_from(survey, settings))
    first = fit_sample(task, log, watch=watch, deadline=deadline)
    reader = part_reader_of(survey, first.feature_map, weights, exact=source.is_exact)
    state = first.state
    if settings.l2 == "auto":  # the same prior beside all rows
        state = replace(state, l2=state.l2 * searched.sample_share)
    held_out = None
    if settings.calibrate and division.held_out.any():
        held_out = HeldOut(with_sample(survey, division.held_out), reader)
    trained, n_passes = _descend(first, state, source, reader, held_out, settings, watch)
    temperature = first.temperature if settings.calibrate else 1.0
    if held_out is not None:
        log.notes.append(
            f"{len(held_out)} rows were held out of the training and set the temperature."
        )
        temperature = held_out.temperature(trained.planes, settings.sharpness)
    log.notes.append(
        f"{survey.n_rows} rows, {survey.n_sampled} of them in the sample; {n_passes} passes over "
        "all."
    )
    target = Target(classes.labels, schema, settings, classes.weight, weights)
    return assemble(
        target, first.feature_map, trained.planes, temperature, trained, state, log
    ), survey


def out_of_core_settings(settings: Settings) -> Settings:
    """Settings as rows out of core allow them: L-BFGS, one member, a uniform penalty, all rows in
    the final training. Raises InvalidParameterError for one that needs the rows in memory."""
    for name, value, expected in [
        ("solver", settings.solver != "adam", '"auto" or "lbfgs"'),
        ("n_members", settings.n_members in ("auto", 1), '"auto" or 1'),
        ("refit", settings.refit, "True"),
        ("monotonic_cst", not settings.is_monotone, "None"),
        ("adaptive_penalty", settings.adaptive_penalty is not True, '"auto" or False'),
        ("early_stopping", settings.early_stopping in ("auto", "off"), '"auto" or "off"'),
    ]:
        if not value:
            raise InvalidParameterError(
                f"Got {name}={getattr(settings, name)!r}; expected {expected} where the rows are "
                "not all in memory."
            )
    return replace(settings, n_members=1, adaptive_penalty=False)


def _check_classes(survey: Survey) -> None:
    labels = survey.classes.labels
    if survey.n_rows == 0:
        raise ValueError("Found no row of positive weight; at least 2 are needed, of 2 classes.")
    if len(labels) < 2:
        raise ValueError(f"Found 1 class, {labels.tolist()[0]!r}; at least 2 are needed.")


def _sample_rows(survey: Survey) -> Rows:
    codes = survey.classes.codes(survey.sample.y)
    weight = survey.sample_weights(codes)
    if weight.min() == weight.max():
        weight = np.ones(len(weight))
    return Rows(all_rows(survey.sample_cells()), codes, unitless(weight))


def _descend(
    first: SampleFit,
    state: TrainingState,
    source: Source,
    reader: PartReader,
    held_out: HeldOut | None,
    settings: Settings,
    watch: Watch | None,
) -> tuple[Trained, int]:
    def watch_planes(record: Record, planes: Planes) -> bool | None:
        assert watch is not None
        snapshot = Snapshot(first.feature_map, planes)
        return watch(record, lambda: snapshot)

    with source.sums(reader) as sums:
        remembered = Remembered(sums if held_out is None else held_out.left_out_of(sums))
        trained = train_on_sums(
            first.planes,
            remembered,
            settings,
            state.l2,
            state.shrink_to_mean,
            None if watch is None else watch_planes,
            first.most_iter,
            first.n_iter,
        )
    return trained, remembered.n_passes


# --- for the estimator ---


def fit_estimator(estimator: Any, source: Source) -> Any:
    """Fit a ``GeometricMixtureClassifier`` on the rows of a source, and return it.

    As in ``fit``, an error or Ctrl-C leaves it as it was.
    """
    settings = estimator.settings()
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    shadow = copy.copy(estimator)

    def check(survey: Survey) -> None:
        if estimator.missing == "error" and survey.has_missing.any():
            n_missing = survey.moments.n_missing
            found = {
                survey.names[j]: (int(n_missing[j]), survey.n_rows)
                for j in np.flatnonzero(n_missing)
            }
            raise missing_error(found, "X")
        estimator.check_planes_of_labels(survey.classes.labels)
        shadow.table_check_ = _check(survey)
        _warn(shadow.table_check_, survey, estimator.n_planes)

    with ProgressLine(estimator.verbose) as line:
        result, survey = fit_out_of_core(
            source,
            settings,
            seed,
            class_weight=lambda survey: class_factors(estimator.class_weight, survey),
            check=check,
            categorical_features=estimator.categorical_features,
            watch=line if line.is_shown else None,
        )
    shadow.n_features_in_ = len(survey.names)
    if survey.has_names:
        shadow.feature_names_in_ = np.array(survey.names, dtype=object)
    return estimator.take_over(shadow, result, survey.sample_cells(), survey.n_rows)


def _check(survey: Survey) -> TableCheck:
    sample, classes = survey.sample, survey.classes
    columns = [
        cells if levels is None else labels_of(as_labels(cells).tolist())
        for cells, levels in zip(sample.columns, survey.levels, strict=True)
    ]
    codes = classes.codes(sample.y)
    return check_sample(survey.names, columns, codes, classes.labels, classes.n_rows)


def _warn(check: TableCheck, survey: Survey, n_planes: Any) -> None:
    moments = survey.moments
    n_levels = survey.schema.n_levels
    high = np.where(survey.schema.is_category, np.maximum(n_levels - 1.0, 0.0), moments.high)
    columns = ColumnRange(moments.low, high, survey.has_missing)
    codes = np.repeat(np.arange(len(survey.classes.labels)), np.minimum(survey.classes.n_rows, 100))
    warn_about(check, columns, survey.schema, survey.classes.labels, codes, n_planes)


def class_factors(class_weight: Any, survey: Survey) -> FloatArray | None:
    """Factors on the weights of each class, (n_classes,), or None."""
    labels, weight = survey.classes.labels, survey.classes.weight
    return class_weight_factors(class_weight, labels, weight, weight.sum())


def in_parts(X: Any, y: Any, weight: Any, cuts: Iterable[int]) -> list[RowPart]:
    """Rows of arrays cut at these places: parts for a ``MemorySource``."""
    edges: IntArray = np.array([0, *cuts, len(y)], dtype=np.intp)
    return [
        RowPart(X[a:b], y[a:b], None if weight is None else weight[a:b])
        for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
