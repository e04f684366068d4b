"""Pictures of effects and interactions: where their lines, bands, bars and cells go.

A panel has a scale of its own, and beside it the scale that all panels share: ``common`` is what
moves the drawn group from one to the other (a factor and a shift along the axis of the log-odds),
with a second set of ticks. Every picture is a dict of plain values; the template draws it.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from geomix.arrays import FloatArray
from geomix.explain.effect_facts import Effect, Effects, Interaction, edge_text
from geomix.table.printing import distinct_numbers

WIDTH, PLOT = 300, 110  # of a panel, and height of its plot of a number
LEFT, RIGHT, TOP = 44, 6, 6
DENSITY = 16  # height of the histogram under a plot
MISSING = 44  # room for the missing cells, right of a plot
NAMES, SHARES, LEVEL = 112, 44, 17  # of a panel of levels: names, shares, height of a line
MOST_LEVELS = 8
MOST_POINTS = 120
# A band may be this much wider than its curve before it leaves the picture: at the ends of a
# column there are few rows, and the curve would be a flat line.
BAND_ROOM = 0.6
# A band whose half is larger than this part of the picture is given in words: shade everywhere
# would show nothing.
BAND_FILLS = 0.6
# Weaker pairs, in parts of the strongest column's importance, are named and not drawn.
FAINT_PAIR = 0.05
# The ends of a column that hold this share of the rows are cut off where the rest fills less than
# this part of the picture.
LONG_END, LONG_END_FILLS = 0.02, 0.5
ROOM_OF_POINTS = 0.04  # beyond the first and the last of few values, as a share of their range
MOST_CELLS = 12  # along one side of a heat map
CELL = 22
CELL_NAMES = 104
LONGEST_NAME = 14  # below a heat map, in letters
UPRIGHT = 3  # names of so many letters have room beside each other


def effect_panels(found: Effects, shown: list[Effect], curves: list[int]) -> list[dict[str, Any]]:
    """A panel for each effect; ``curves`` : codes of the classes to draw, among ``labels``."""
    spans = [_span(one, curves) for one in shown]
    common = min(low for low, _ in spans), max(high for _, high in spans)
    made = []
    for one, span in zip(shown, spans, strict=True):
        draw = _number_panel if one.kind == "number" else _level_panel
        made.append({"name": one.column, "kind": one.kind} | draw(one, curves, span, common))
    return made


def _span(one: Effect, curves: list[int]) -> tuple[float, float]:
    """The smallest and largest log-odds of a panel; it holds zero."""
    values = [one.values[curves]] + ([] if one.missing is None else [one.missing[curves]])
    low = min(float(part.min(initial=0.0)) for part in values)
    high = max(float(part.max(initial=0.0)) for part in values)
    room = BAND_ROOM * max(high - low, 1e-9)
    if one.lower is not None and one.upper is not None:
        low = max(min(low, float(one.lower[curves].min(initial=0.0))), low - room)
        high = min(max(high, float(one.upper[curves].max(initial=0.0))), high + room)
    pad = 0.06 * max(high - low, 1e-9)
    return low - pad, high + pad


# --- numbers ---


def _number_panel(
    one: Effect, curves: list[int], span: tuple[float, float], common: tuple[float, float]
) -> dict[str, Any]:
    assert one.x is not None
    right = RIGHT + (0 if one.missing is None else MISSING)
    low, high = _reach(one)
    width = WIDTH - LEFT - right
    across = _scale(low, high, 0.0, width)
    up = _scale(*span, PLOT, 0.0)
    x = one.x if one.has_few_values else _points(one.x, low, high)
    wide = _wide_band(one, curves, span)
    lines = [_line(one, code, x, across, up, with_band=wide is None) for code in curves]
    return {
        "height": TOP + PLOT + DENSITY + 20,
        "plot": PLOT,
        "width": width,
        "low": low,
        "high": high,
        "zero": _short(up(0.0)),
        "lines": lines,
        "wide": wide,
        "missing": None if one.missing is None else _missing(one, curves, up, width),
        "density": _density(one, across, width),
        "x_ticks": _x_ticks(one.marks or ticks(low, high, 4), across, width),
        "y_ticks": _ticks(span, PLOT, 0.0),
        "common_ticks": _ticks(common, PLOT, 0.0),
        "common": _move(span, common, PLOT, 0.0),
    }


def _x_ticks(places: list[float], across: Any, width: float) -> list[dict[str, Any]]:
    """Ticks whose texts stay inside the panel."""
    made = []
    for tick, text in zip(places, distinct_numbers(places), strict=True):
        at = float(across(tick))
        anchor = "end" if at > width - 16 else "start" if at < 8 else "middle"
        made.append({"at": _short(at), "text": text, "anchor": anchor})
    return made


def _reach(one: Effect) -> tuple[float, float]:
    """The range of the rows, or of the curve where there are none.

    A long end with few rows is cut off: a few fortunes would press all incomes into one corner.
    """
    assert one.x is not None
    edges = one.density_edges
    if one.has_few_values:  # room for the points at both ends
        room = ROOM_OF_POINTS * float(one.x[-1] - one.x[0])
        return float(one.x[0]) - room, float(one.x[-1]) + room
    if one.density is None or edges is None or not len(one.density):
        return _apart(float(one.x[0]), float(one.x[-1]))
    share = np.cumsum(one.density) / max(float(one.density.sum()), 1e-300)
    first = int(np.searchsorted(share, LONG_END / 2.0))
    last = min(int(np.searchsorted(share, 1.0 - LONG_END / 2.0)), len(share) - 1)
    whole, inner = edges[-1] - edges[0], edges[last + 1] - edges[first]
    if inner < LONG_END_FILLS * whole:
        return _apart(float(edges[first]), float(edges[last + 1]))
    return _apart(float(edges[0]), float(edges[-1]))


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low - 1.0, high + 1.0)


def _points(x: FloatArray, low: float, high: float) -> FloatArray:
    """The ends of a picture and the curve's points between them; of many some."""
    inside = x[(x > low) & (x < high)]
    if len(inside) > MOST_POINTS:
        inside = inside[np.linspace(0, len(inside) - 1, MOST_POINTS).astype(np.intp)]
    return np.concatenate([[low], inside, [high]])


def _wide_band(one: Effect, curves: list[int], span: tuple[float, float]) -> float | None:
    """Half of the median width of a band that would fill its picture; None if it does not."""
    if one.lower is None or one.upper is None:
        return None
    half = float(np.median(one.upper[curves] - one.lower[curves])) / 2.0
    return half if half > BAND_FILLS * (span[1] - span[0]) else None


def _line(
    one: Effect, code: int, x: FloatArray, across: Any, up: Any, *, with_band: bool
) -> dict[str, Any]:
    def path(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        assert one.x is not None
        return across(x), up(_along(one.x, values[code], x))

    def between(low: FloatArray | None, high: FloatArray | None) -> str | None:
        if low is None or high is None:
            return None
        (a, upper), (_, lower) = path(high), path(low)
        return f"{_path(a, upper)} {_path(a[::-1], lower[::-1])}"

    return {
        "code": code,
        "points": _path(*path(one.values)),
        "dots": _dots(one, code, across, up) if one.has_few_values else [],
        "band": between(one.lower, one.upper) if with_band else None,
        "planes": between(one.planes_low, one.planes_high),
    }


def _dots(one: Effect, code: int, across: Any, up: Any) -> list[dict[str, float]]:
    """The values that the rows have, as points on their line."""
    assert one.x is not None
    return [
        {"x": _short(across(at)), "y": _short(up(value))}
        for at, value in zip(one.x, one.values[code], strict=True)
    ]


def _along(x: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """A curve at some places: beyond its ends a straight one goes on, any other is flat."""
    out: FloatArray = np.interp(at, x, values)
    chord = values[0] + (values[-1] - values[0]) * (x - x[0]) / max(x[-1] - x[0], 1e-300)
    if len(x) > 1 and np.allclose(values, chord, atol=1e-9 * max(np.abs(values).max(), 1e-9)):
        slope = (values[-1] - values[0]) / max(x[-1] - x[0], 1e-300)
        out = values[0] + slope * (at - x[0])
    return out


def _missing(one: Effect, curves: list[int], up: Any, width: float) -> dict[str, Any]:
    assert one.missing is not None
    dots = [
        {
            "code": code,
            "y": _short(up(one.missing[code])),
            "low": None if one.missing_lower is None else _short(up(one.missing_lower[code])),
            "high": None if one.missing_upper is None else _short(up(one.missing_upper[code])),
        }
        for code in curves
    ]
    return {"x": _short(width + MISSING / 2.0 + 2.0), "dots": dots}


def _density(one: Effect, across: Any, width: float) -> list[dict[str, float]]:
    if one.density is None or one.density_edges is None or not len(one.density):
        return []
    ends = np.clip(across(one.density_edges), 0.0, width)
    # Roots: a column that is mostly zero still shows where its other rows lie.
    tall = np.sqrt(one.density / max(float(one.density.max()), 1e-300)) * (DENSITY - 2)
    return [
        {"x": _short(a), "width": _short(max(b - a - 0.4, 0.4)), "height": _short(h)}
        for a, b, h in zip(ends[:-1], ends[1:], tall, strict=True)
        if h > 0.0
    ]


# --- categories ---


def _level_panel(
    one: Effect, curves: list[int], span: tuple[float, float], common: tuple[float, float]
) -> dict[str, Any]:
    assert one.levels is not None
    width = WIDTH - NAMES - SHARES
    across = _scale(*span, 0.0, width)
    places = _levels_shown(one, curves)
    rows = [_level(one, curves, level, i, across) for i, level in enumerate(places)]
    if one.missing is not None:
        rows.append(_missing_level(one, curves, len(rows), across))
    plot = LEVEL * len(rows)
    return {
        "height": TOP + plot + 18,
        "plot": plot,
        "width": width,
        "zero": _short(across(0.0)),
        "rows": rows,
        "left_out": len(one.levels) - len(places),
        "y_ticks": _ticks(span, 0.0, width),
        "common_ticks": _ticks(common, 0.0, width),
        "common": _move(span, common, 0.0, width),
        "table": level_table(one, curves),
    }


def _levels_shown(one: Effect, curves: list[int]) -> list[int]:
    """The most frequent levels, largest effect first."""
    weight = one.shares if one.shares is not None else np.abs(one.values[curves]).max(axis=0)
    kept = np.argsort(-weight, kind="stable")[:MOST_LEVELS]
    order = np.argsort(-one.values[curves[-1]][kept], kind="stable")
    return kept[order].tolist()


def _level(one: Effect, curves: list[int], level: int, i: int, across: Any) -> dict[str, Any]:
    assert one.levels is not None
    share = None if one.shares is None else float(one.shares[level])
    marks = [
        _mark(
            code,
            one.values[code, level],
            None if one.lower is None else one.lower[code, level],
            None if one.upper is None else one.upper[code, level],
            across,
        )
        for code in curves
    ]
    return {"name": one.levels[level], "share": share, "y": _row(i), "marks": marks}


def _missing_level(one: Effect, curves: list[int], i: int, across: Any) -> dict[str, Any]:
    assert one.missing is not None
    marks = [
        _mark(
            code,
            one.missing[code],
            None if one.missing_lower is None else one.missing_lower[code],
            None if one.missing_upper is None else one.missing_upper[code],
            across,
        )
        for code in curves
    ]
    return {"name": "(missing)", "share": one.missing_share, "y": _row(i), "marks": marks}


def _mark(code: int, value: float, low: Any, high: Any, across: Any) -> dict[str, Any]:
    return {
        "code": code,
        "x": _short(across(value)),
        "low": None if low is None else _short(across(low)),
        "high": None if high is None else _short(across(high)),
    }


def _row(i: int) -> float:
    return _short((i + 0.5) * LEVEL)


def level_table(one: Effect, curves: list[int]) -> list[dict[str, Any]]:
    """Every level with its share and its effect on each class, most frequent first."""
    assert one.levels is not None
    shares = np.zeros(len(one.levels)) if one.shares is None else one.shares
    return [
        {
            "name": one.levels[level],
            "share": None if one.shares is None else float(shares[level]),
            "values": [float(one.values[code, level]) for code in curves],
        }
        for level in np.argsort(-shares, kind="stable").tolist()
    ]


# --- importances ---


def importance_bars(found: Effects, most: int) -> list[dict[str, Any]]:
    """Mean absolute effects with their intervals, largest first; parts of the longest."""
    shown = [one for one in found.strongest(most) if one.importance is not None and one.size > 1e-9]
    longest = max([_upper(one) for one in shown] + [1e-12])
    return [
        {
            "name": one.column,
            "value": one.size,
            "part": one.size / longest,
            "low": None if one.importance_lower is None else _mean(one.importance_lower) / longest,
            "high": None if one.importance_upper is None else _upper(one) / longest,
        }
        for one in shown
    ]


def _upper(one: Effect) -> float:
    return one.size if one.importance_upper is None else _mean(one.importance_upper)


def _mean(values: FloatArray) -> float:
    return float(values.mean())


# --- interactions ---


def drawn_pairs(found: Effects, most: int) -> list[Interaction]:
    """The interactions that are strong enough beside the effects to be drawn."""
    strongest = max([one.size for one in found] + [0.0])
    strong = [one for one in found.interactions if one.strength >= FAINT_PAIR * strongest]
    return strong[:most]


def heat_map(one: Interaction, labels: tuple[Any, ...]) -> dict[str, Any]:
    """The cells of the class on which the two columns act most together."""
    curve = int(np.argmax((one.values**2).mean(axis=(1, 2))))
    x = _some(_cell_names(one.x_edges, one.x_levels))
    y = _some(_cell_names(one.y_edges, one.y_levels))
    values = one.values[curve][np.ix_([i for i, _ in x], [i for i, _ in y])]
    most = max(float(np.abs(values).max(initial=0.0)), 1e-12)
    longest = max([min(len(name), LONGEST_NAME) for _, name in x] + [0])
    cells = [
        {
            "x": CELL_NAMES + CELL * i,
            "y": CELL * (len(y) - 1 - j),
            "value": float(values[i, j]),
            "part": round(float(abs(values[i, j]) / most), 2),
            "where": f"{x[i][1]}, {y[j][1]}",
        }
        for i in range(len(x))
        for j in range(len(y))
    ]
    return {
        "columns": one.columns,
        "label": str(labels[curve]),
        "strength": one.strength,
        "h": one.h,
        "cells": cells,
        "x_names": [{"at": CELL_NAMES + CELL * (i + 0.5), "text": n} for i, (_, n) in enumerate(x)],
        "y_names": [{"at": CELL * (len(y) - 0.5 - j) + 4, "text": n} for j, (_, n) in enumerate(y)],
        "names_end": CELL_NAMES - 5,
        "width": CELL_NAMES + CELL * len(x),
        "height": CELL * len(y),
        "foot": round(12 + 5.2 * longest),
        "is_upright": longest <= UPRIGHT,
        "most": most,
        "cell": CELL,
        "is_thinned": values.shape != one.values[curve].shape,
    }


def _cell_names(edges: FloatArray | None, levels: tuple[str, ...] | None) -> list[str]:
    if edges is None:
        return list(levels or ())
    texts = list(map(edge_text, edges))
    if len(set(texts)) < len(texts):
        texts = distinct_numbers(edges.tolist())
    return [f"{a} – {b}" for a, b in itertools.pairwise(texts)]


def _some(names: list[str]) -> list[tuple[int, str]]:
    """At most ``MOST_CELLS`` cells with their places, evenly spread."""
    if len(names) <= MOST_CELLS:
        return list(enumerate(names))
    kept = np.linspace(0, len(names) - 1, MOST_CELLS).astype(int)
    return [(int(i), names[i]) for i in kept]


# --- scales ---


def ticks(low: float, high: float, n: int) -> list[float]:
    """About ``n`` round numbers between low and high, zero among them if it lies there."""
    width = high / n - low / n
    if not np.isfinite(width) or width <= 0.0:
        return [low]
    power = 10.0 ** np.floor(np.log10(width))
    step = next(one * power for one in (1.0, 2.0, 2.5, 5.0, 10.0) if one * power >= width * 0.999)
    first = np.ceil(low / step - 1e-9)
    return [float(round((first + i) * step, 12)) for i in range(int((high / step) - first) + 1)]


def _ticks(span: tuple[float, float], start: float, end: float) -> list[dict[str, Any]]:
    place = _scale(*span, start, end)
    return [{"at": _short(place(t)), "text": _signed(t)} for t in ticks(*span, 4)]


def _move(
    span: tuple[float, float], common: tuple[float, float], start: float, end: float
) -> dict[str, float]:
    """factor, shift : place on the common scale = factor * place on the own scale + shift"""
    own, other = _scale(*span, start, end), _scale(*common, start, end)
    a, b = span
    factor = (other(b) - other(a)) / (own(b) - own(a))
    return {"factor": round(float(factor), 5), "shift": _short(other(a) - factor * own(a), 2)}


def _scale(low: float, high: float, start: float, end: float) -> Any:
    width = high / 2.0 - low / 2.0
    return lambda x: start + (end - start) * ((x / 2.0 - low / 2.0) / width)


def _path(x: FloatArray, y: FloatArray) -> str:
    return " ".join(f"{_short(a)},{_short(b)}" for a, b in zip(x, y, strict=True))


def _short(number: float, digits: int = 1) -> float:
    return round(float(number), digits)


def _signed(x: float) -> str:
    return "0" if x == 0 else f"{x:+.3g}".replace("-", "−")
