"""Pictures as numbers: where lines, dots and bars go in the SVG that the template writes.

Effects have a module of their own, ``effect_pictures.py``.

Every picture is a dict of plain values in the coordinates of its own view box; the template
draws them and names them, and computes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.core.calibration import ReliabilityCurve
from geomix.explain.global_explanation import ColumnCurves

RELIABILITY = 220  # side of the square
SPARK_WIDTH, SPARK_HEIGHT = 96, 22
MOST_POINTS = 80


def reliability_picture(curve: ReliabilityCurve) -> dict[str, Any]:
    """Dots of confidence and accuracy, larger for more rows, from ``low`` to 1 on both axes."""
    filled = curve.share > 0.0
    x, y, share = curve.confidence[filled], curve.accuracy[filled], curve.share[filled]
    low = float(max(np.floor(min(x.min(), y.min()) * 10.0 - 0.25) / 10.0, 0.0))
    place = _scale(low, 1.0, 0.0, RELIABILITY)
    dots = [
        {
            "x": _short(place(a)),
            "y": _short(RELIABILITY - place(b)),
            "r": _short(2.5 + 5.5 * np.sqrt(part / share.max())),
            "confidence": float(a),
            "accuracy": float(b),
            "share": float(part),
        }
        for a, b, part in zip(x, y, share, strict=True)
    ]
    ticks = [
        {"at": _short(place(tick)), "text": f"{100.0 * tick:.0f}\u00a0%"}
        for tick in np.linspace(low, 1.0, 3).round(3)
    ]
    path = " ".join(f"{dot['x']},{dot['y']}" for dot in dots)
    return {"side": RELIABILITY, "dots": dots, "line": path, "ticks": ticks}


def spark_picture(
    curve: ColumnCurves, plane: int, reach: tuple[float, float], most: float
) -> dict[str, Any]:
    """One plane's curve over one column, small: a line, or for a category a bar for each level."""
    values = curve.values[plane]
    up = _scale(-most, most, SPARK_HEIGHT, 0.0)
    picture: dict[str, Any] = {"width": SPARK_WIDTH, "height": SPARK_HEIGHT}
    picture["zero"] = _short(up(0.0))
    if curve.kind == "category":
        step = SPARK_WIDTH / len(values)
        bars = [
            {
                "x": _short(i * step + 0.1 * step),
                "width": _short(0.8 * step),
                "y": _short(min(up(value), up(0.0))),
                "height": _short(abs(up(value) - up(0.0))),
            }
            for i, value in enumerate(values)
        ]
        return picture | {"kind": "category", "bars": bars}
    low, high = reach
    x = _points(curve, low, high)
    line = _path(_scale(low, high, 0.0, SPARK_WIDTH)(x), up(_along(curve, values, x)))
    return picture | {"kind": "number", "line": line}


def largest_size(values: list[FloatArray]) -> float:
    """The largest size among the values of several pictures, for a common scale; never zero."""
    return max([float(np.abs(one).max(initial=0.0)) for one in values] + [1e-9])


def _points(curve: ColumnCurves, low: float, high: float) -> FloatArray:
    """The ends and the knots between them, thinned where there are very many."""
    assert curve.x is not None
    inside = curve.x[(curve.x > low) & (curve.x < high)]
    inside = inside[:: -(-max(len(inside), 1) // MOST_POINTS)]
    return np.concatenate([[low], inside, [high]])


def _along(curve: ColumnCurves, values: FloatArray, x: FloatArray) -> FloatArray:
    """Values at x: linear between the curve's points, beyond them a line or flat."""
    assert curve.x is not None
    out: FloatArray = np.interp(x, curve.x, values)
    if curve.is_straight:
        slope = (values[-1] - values[0]) / (curve.x[-1] - curve.x[0])
        out = values[0] + slope * (x - curve.x[0])
    return out


def _scale(low: float, high: float, start: float, end: float) -> Any:
    """Linear from [low, high] to [start, end]; safe for ranges beyond the largest float."""
    width = high / 2.0 - low / 2.0
    return lambda x: start + (end - start) * ((x / 2.0 - low / 2.0) / width)


def _path(x: FloatArray, y: FloatArray) -> str:
    return " ".join(f"{_short(a)},{_short(b)}" for a, b in zip(x, y, strict=True))


def _short(number: float) -> float:
    return round(float(number), 1)
