"""Explanations in the form of InterpretML, so that ``interpret.show`` takes them.

``data(None)`` has the importances, ``data(i)`` the i-th term (columns, then interactions) and
``data(-1)`` all of them:

    names          levels, or the edges of the pieces of a curve
    scores, lower_bounds, upper_bounds   (n,) for two classes, (n, n_classes) for more
    density        names and counts of the rows
    left_names, right_names, scores      of an interaction

A curve is linear between its values; InterpretML draws steps, so ``scores`` has the middle of each
piece, and ``curve`` the curve itself. ``visualize`` needs InterpretML, the rest does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.effect_facts import Effect, Effects, Interaction
from geomix.table.printing import frame_of

ALL = -1  # the key of everything
MOST_BARS = 15


def feature_names(found: Effects) -> list[str]:
    return [*found.columns, *(one.name for one in found.interactions)]


def feature_types(found: Effects) -> list[str]:
    kinds = {"number": "continuous", "category": "nominal"}
    return [*(kinds[one.kind] for one in found), *("interaction" for _ in found.interactions)]


def selector(found: Effects) -> Any:
    """A pandas frame with a line for each term."""
    pairs = zip(feature_names(found), feature_types(found), strict=True)
    return frame_of([{"Name": name, "Type": kind} for name, kind in pairs], ("Name", "Type"))


def global_data(found: Effects, key: int | None) -> dict[str, Any]:
    """What InterpretML's ``explain_global().data(key)`` has."""
    n_terms = len(found.effects) + len(found.interactions)
    if key is None:
        return _importances(found)
    if key == ALL:
        return {
            "overall": _importances(found),
            "specific": [global_data(found, place) for place in range(n_terms)],
        }
    if not 0 <= key < n_terms:
        raise ValueError(f"Got key={key!r}; expected None, -1 or 0 to {n_terms - 1}.")
    if key < len(found.effects):
        return _term(found, found.effects[key])
    return _interaction(found.interactions[key - len(found.effects)])


def _importances(found: Effects) -> dict[str, Any]:
    sizes = [one.size for one in found] + [one.strength for one in found.interactions]
    facts: dict[str, Any] = {"type": "univariate", "names": feature_names(found), "scores": sizes}
    if found.has_bands:
        pairs = [float("nan")] * len(found.interactions)
        for bound in ("lower", "upper"):
            ends = [getattr(one, f"importance_{bound}") for one in found]
            facts[f"{bound}_bounds"] = [float(end.mean()) for end in ends] + pairs
    return facts


def _term(found: Effects, one: Effect) -> dict[str, Any]:
    facts: dict[str, Any] = {"type": "univariate", "names": _names(one)}
    facts |= {"scores": _scores(one, one.values)}
    facts["scores_range"] = _scores_range(found)
    if one.lower is not None and one.upper is not None:
        facts["lower_bounds"] = _scores(one, one.lower)
        facts["upper_bounds"] = _scores(one, one.upper)
    if found.n_rows is not None:
        facts["density"] = _density(one, found.n_rows)
    if one.x is not None:
        facts["curve"] = {"x": one.x.tolist(), "y": _by_class(one.values)}
    if one.missing is not None:
        facts["missing"] = one.missing.tolist()
    facts["meta"] = {"label_names": list(found.classes)}
    return facts


def _names(one: Effect) -> list[Any]:
    return list(one.levels) if one.levels is not None else one.x.tolist()  # type: ignore[union-attr]


def _scores(one: Effect, values: FloatArray) -> FloatArray:
    if one.levels is None:
        values = (values[:, 1:] + values[:, :-1]) / 2.0
    return _by_class(values)


def _by_class(values: FloatArray) -> FloatArray:
    """(n_curves, n) -> (n,) for one curve, (n, n_curves) for more."""
    return values[0] if len(values) == 1 else values.T


def _scores_range(found: Effects) -> tuple[float, float]:
    drawn = [one for one in found if one.values.size]  # a category without any cell has no levels
    least = min(float((one.values if one.lower is None else one.lower).min()) for one in drawn)
    most = max(float((one.values if one.upper is None else one.upper).max()) for one in drawn)
    return least, most


def _density(one: Effect, n_rows: int) -> dict[str, Any]:
    names: list[Any] = _names(one)
    shares = one.shares
    if one.density is not None and one.density_edges is not None:
        names, shares = one.density_edges.tolist(), one.density
    return {"names": names, "scores": np.rint(np.asarray(shares) * n_rows).astype(int).tolist()}


def _interaction(one: Interaction) -> dict[str, Any]:
    sides = [(one.x_edges, one.x_levels), (one.y_edges, one.y_levels)]
    left, right = (
        list(levels) if levels is not None else np.asarray(edges).tolist()
        for edges, levels in sides
    )
    values = one.values[0] if len(one.values) == 1 else np.moveaxis(one.values, 0, -1)
    most = float(np.abs(values).max(initial=0.0))
    return {
        "type": "interaction",
        "left_names": left,
        "right_names": right,
        "scores": values,
        "scores_range": (-most, most),
    }


def plots() -> Any:
    """The plots of InterpretML."""
    try:
        return import_module("interpret.visual.plot")
    except ImportError as error:
        raise ImportError(
            f"visualize() draws with InterpretML, of which {error.name!r} is not installed: pip "
            "install interpret. "
            "geomix.plots draws the same with matplotlib, and data() has the numbers."
        ) from error


def global_figure(found: Effects, key: int | None) -> Any:
    """A Plotly figure of the importances or of one term."""
    plot = plots()
    facts = global_data(found, key)
    if key is None:
        few = plot.sort_take(
            facts, sort_fn=lambda x: -abs(x), top_n=MOST_BARS, reverse_results=True
        )
        title = "Mean absolute effect in log-odds"
        return plot.plot_horizontal_bar(few, title="Importance", xtitle=title, start_zero=True)
    name, kind = feature_names(found)[key], feature_types(found)[key]
    unit = found.unit() if len(found.labels) == 1 else "log-odds of each class"
    if kind == "interaction":
        one = found.interactions[key - len(found.effects)]
        if facts["scores"].ndim == 3:
            strongest = int((one.values**2).sum(axis=(1, 2)).argmax())
            facts["scores"], unit = one.values[strongest], found.unit(strongest)
        first, second = one.columns
        return plot.plot_pairwise_heatmap(
            facts, title=f"{name}: {unit}", xtitle=first, ytitle=second
        )
    if kind == "nominal":
        return plot.plot_bar(facts, title=name, xtitle=name, ytitle=unit)
    several = facts["scores"].ndim == 2
    style = {"multiclass": several, "show_error": not several and "upper_bounds" in facts}
    return plot.plot_continuous_bar(facts, title=name, xtitle=name, ytitle=unit, **style)


# --- single rows ---


def local_data(explanation: Any, key: int | None) -> dict[str, Any] | None:
    """What InterpretML's ``explain_local().data(key)`` has, from a LocalExplanation."""
    if key is None:
        return None
    if key == ALL:
        return {
            "overall": None,
            "specific": [local_data(explanation, i) for i in range(len(explanation))],
        }
    i = range(len(explanation))[key]
    label = int(explanation.labels[i])
    extra = {"Intercept": explanation.bias[i], "several planes": explanation.pooling[i]}
    return {
        "type": "univariate",
        "names": list(explanation.columns),
        "scores": explanation.contributions[i].tolist(),
        "values": ["" if cell is None else cell for cell in explanation.cells[i].values()],
        "extra": {
            "names": list(extra),
            "scores": [float(one) for one in extra.values()],
            "values": [1, 1],
        },
        "perf": {
            "is_classification": True,
            "actual": float("nan"),
            "predicted": label,
            "actual_score": float("nan"),
            "predicted_score": float(explanation.probabilities[i, label]),
        },
        "meta": {"label_names": list(explanation.classes)},
    }


def local_selector(explanation: Any) -> Any:
    """A pandas frame with a line for each row."""
    rows = range(len(explanation))
    records = [
        {
            "Predicted": explanation.classes[explanation.labels[i]],
            "PrScore": explanation.probabilities[i, explanation.labels[i]],
        }
        for i in rows
    ]
    return frame_of(records, ("Predicted", "PrScore"))


def local_figure(explanation: Any, key: int | None) -> Any:
    """A Plotly figure of the contributions to the log-odds of one row; None for all rows."""
    if key is None:
        return None
    plot = plots()
    facts = local_data(explanation, key)
    few = plot.sort_take(facts, sort_fn=lambda x: -abs(x), top_n=MOST_BARS, reverse_results=True)
    label, against = (
        explanation.classes[codes[key]] for codes in (explanation.labels, explanation.against)
    )
    return plot.plot_horizontal_bar(few, xtitle=f"log-odds of {label} against {against}")
