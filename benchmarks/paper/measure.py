"""One fit, in a process of its own, and all that is measured of it.

quality         accuracy, macro-F1 of the model's decision; log-loss and ECE (15 bins) of its
                probabilities, before and after temperature scaling
times           of the final fit and with the search, on the wall and of the processor
equal rows      the same quality of a rival that was fitted on the training rows alone, as the
                recipe is
one row         microseconds by every path the model offers
explanation     terms that carry 90 % of an explanation; for geomix also responsibilities (of the
                classes that have several planes), usage of planes, idle planes, and the strongest
                columns of each plane
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import apart
import numpy as np
from apart import OK, limit_memory, limit_processor
from quality import quality
from threadpoolctl import threadpool_limits
from timing import Span, latency

from geomix import GeometricMixture
from geomix.explain.diagnostics import plane_usage, responsibility_concentration, top_columns
from paper import ablations, limits, models, sensitivity
from paper.data import Split, load, split_rows
from paper.models import Fitted, OneRow
from paper.results import ABLATIONS, LIMITS, MODELS, SENSITIVITY, Run

VARIANTS = {ABLATIONS: ablations.VARIANTS, SENSITIVITY: sensitivity.VARIANTS}
CALLS = 100_000
DISTINCT_ROWS = 200
EXPLAINED = 0.9
IDLE = 0.01  # a plane that wins fewer of its class's rows
TOP_COLUMNS = 5
# Ends the names of metrics of a model that was fitted on the training rows alone.
EQUAL_ROWS = "_on_train"


@dataclass(frozen=True)
class Job:
    """``row_seconds`` is the most time for one path of one row; 0: one row is not timed."""

    run: Run
    row_seconds: float
    cpu_seconds: int = 600
    memory_bytes: int = 12 * 2**30


def run(job: Job) -> dict[str, Any]:
    """Measure in a process of its own; always answers, with a status."""
    return apart.run(measure, job, ["paper.measure", "sklearn.ensemble", "sklearn.svm"])


def measure(job: Job) -> dict[str, Any]:
    threadpool_limits(1)  # what was loaded before the variables were set
    data = load(job.run.dataset)
    split = split_rows(data.X, data.y, job.run.seed)
    if job.run.part == LIMITS:
        split = limits.restricted(split, limits.VARIANTS[job.run.model][1], job.run.seed)
    limit_memory(job.memory_bytes)
    limit_processor(job.cpu_seconds)
    fitted = fit(job.run, split)
    limit_processor(None)
    values = {
        **qualities(fitted, split),
        **seconds(fitted.fit, "fit"),
        **seconds(fitted.total, "total"),
    }
    if job.row_seconds:
        values |= one_row(fitted.paths, split.X_test, job.row_seconds)
    if job.run.part == MODELS and fitted.contributions is not None:
        values["terms"] = float(terms_needed(fitted.contributions(split.X_test)).mean())
    if fitted.mixture is not None:
        values |= responsibility(fitted.mixture, split)
        if job.run.part == MODELS and fitted.mixture.planes.n_members == 1:
            values |= planes_in_detail(fitted.mixture, split)
    return {"status": OK, "values": values, "chosen": fitted.chosen}


def fit(run: Run, split: Split) -> Fitted:
    if run.part in (MODELS, LIMITS):
        key = run.model if run.part == MODELS else limits.VARIANTS[run.model][0]
        model = models.get(key)
        for name in model.needs:  # so that no clock counts an import
            importlib.import_module(name)
        return model.fit(split, run.seed)
    from paper.models import geomix_paper

    return geomix_paper.fit(split, run.seed, **VARIANTS[run.part][run.model])


def qualities(fitted: Fitted, split: Split) -> dict[str, float]:
    predicted = fitted.predict(split.X_test)
    before = quality(fitted.before(split.X_test), split.y_test, predicted)
    after = quality(fitted.after(split.X_test), split.y_test, predicted)
    found = {**after, "log_loss_before": before["log_loss"], "ece_before": before["ece"]}
    if fitted.on_train is None:
        return found
    same = quality(
        fitted.on_train.after(split.X_test), split.y_test, fitted.on_train.predict(split.X_test)
    )
    return found | {f"{metric}{EQUAL_ROWS}": value for metric, value in same.items()}


def seconds(span: Span, name: str) -> dict[str, float]:
    return {f"{name}_seconds": span.wall, f"{name}_cpu_seconds": span.cpu}


def one_row(paths: dict[str, OneRow], X: Any, most_seconds: float) -> dict[str, float]:
    """Per path: a typical call and the mean of all, in microseconds, and how many there were."""
    values = {}
    for name, path in paths.items():
        rows = np.ascontiguousarray(
            X[:DISTINCT_ROWS] if path.prepared is None else path.prepared(X[:DISTINCT_ROWS])
        )
        inputs = list(rows) if path.flat else [rows[i : i + 1] for i in range(len(rows))]
        found = latency(path.ask, inputs, CALLS, most_seconds)
        values[f"row_us {name}"] = 1e6 * found.typical
        values[f"row_mean_us {name}"] = 1e6 * found.mean
        values[f"row_calls {name}"] = float(found.calls)
    return values


def terms_needed(contributions: Any, share: float = EXPLAINED) -> Any:
    """Per row, the fewest terms that hold ``share`` of the sum of absolute contributions."""
    sizes = -np.sort(-np.abs(contributions), axis=1)
    short = np.cumsum(sizes, axis=1) < share * sizes.sum(axis=1, keepdims=True)
    return short.sum(axis=1) + 1


def responsibility(model: GeometricMixture, split: Split) -> dict[str, float]:
    usage = plane_usage(model, split.X_test, split.y_test)
    several = rows_of_several_planes(model, split)
    values = {"several_planes": float(several.mean())}
    if several.any():
        rows = split.X_test[several], split.y_test[several]
        found = responsibility_concentration(model, *rows)
        values["max_responsibility"] = found.max_responsibility
        values["responsibility_entropy"] = found.entropy
        values["member_max_responsibility"] = member_concentration(model, *rows)
    return values | {
        "n_planes": float(model.planes.n_planes),
        "n_members": float(model.planes.n_members),
        "idle_planes": float(np.mean(usage < IDLE)),
        "temperature": model.temperature,
    }


def rows_of_several_planes(model: GeometricMixture, split: Split) -> Any:
    """Test rows whose class has several planes (of each member): one plane alone always has all of
    the responsibility, which is no finding."""
    return (model.planes.per_class // model.planes.n_members > 1)[split.y_test]


def member_concentration(model: GeometricMixture, X: Any, y: Any) -> float:
    """Mean largest responsibility within each member of an ensemble; without one, the plain one.

    A class of an ensemble has the planes of its first member, then those of the second, and so on.
    """
    planes, n_members = model.planes, model.planes.n_members
    A = n_members * model.responsibilities(X)
    largest = [
        A[y == code, start:end].reshape(-1, n_members, (end - start) // n_members)
        for code, (start, end) in enumerate(pairwise(planes.class_start))
    ]
    return float(np.concatenate([own.max(axis=2).mean(axis=1) for own in largest]).mean())


def planes_in_detail(model: GeometricMixture, split: Split) -> dict[str, float]:
    """ "usage class plane" and, for a linear lift, "weight class plane column"."""
    usage = plane_usage(model, split.X_test, split.y_test)
    start = model.planes.class_start
    values = {
        f"usage {model.classes[code]} {plane - start[code]}": float(share)
        for plane, (code, share) in enumerate(zip(model.planes.class_of, usage, strict=True))
    }
    if model.lift.kind == "linear":
        for one in top_columns(model, TOP_COLUMNS):
            for column, weight in zip(one.columns, one.weights, strict=True):
                values[f"weight {one.label} {one.plane} {column}"] = weight
    return values
