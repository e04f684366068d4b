"""Adult explained by geomix, a GAM and an EBM: all rows above, one row below, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from geomix.plots import look
from paper import adult, models
from paper.data import split_rows

SEED = 0
SHOWN = 8
COMPARED = ("geomix", "gam", "ebm")
RICH = 1  # the class >50K
WIDEST_NAME = 34


@dataclass(frozen=True, eq=False)
class Explained:
    """contributions : (n_rows, n_terms);  names : of the terms;  wins : rows that get >50K."""

    title: str
    contributions: Any
    names: list[str]
    wins: Any
    accuracy: float


@cache
def explained() -> tuple[Explained, ...]:
    data = adult.load()
    split = split_rows(data.X, data.y, SEED)
    found = []
    for key in COMPARED:
        model = models.get(key)
        fitted = model.fit(split, SEED)
        assert fitted.contributions is not None
        columns = fitted.terms or tuple((place,) for place in range(len(data.columns)))
        names = [" and ".join(data.columns[place] for place in term) for term in columns]
        predicted = fitted.predict(split.X_test)
        accuracy = float((predicted == split.y_test).mean())
        contributions = np.asarray(fitted.contributions(split.X_test))
        found.append(Explained(model.name, contributions, names, predicted == RICH, accuracy))
    return tuple(found)


def draw() -> Figure:
    figure = Figure(figsize=(14.0, 6.6), layout="constrained")
    axes = figure.subplots(2, len(COMPARED))
    found = explained()
    row = int(np.flatnonzero(np.all([one.wins for one in found], axis=0))[0])
    for (above, below), one in zip(axes.T, found, strict=True):
        size = np.abs(one.contributions).mean(axis=0)
        bars(above, size, one.names, look.HUES[0])
        above.set_title(f"{one.title}, accuracy {one.accuracy:.3f}", fontsize=10, loc="left")
        above.set_xlabel("mean size of the contribution, all test rows")
        bars(below, one.contributions[row], one.names, None)
        below.set_xlabel("contribution to >50K, one test row")
    return figure


def bars(ax: Any, values: Any, names: list[str], color: str | None) -> None:
    """The largest values, largest on top; coloured by sign where no colour is given."""
    order = np.argsort(-np.abs(values), kind="stable")[:SHOWN]
    shown = values[order]
    colors = color or [look.HUES[0] if value >= 0.0 else look.HUES[1] for value in shown]
    ax.barh(np.arange(len(order)), shown, 0.72, color=colors)
    ax.axvline(0.0, color=look.INK, linewidth=0.8)
    ax.set_yticks(np.arange(len(order)), [shortened(names[place]) for place in order], fontsize=8)
    ax.invert_yaxis()
    look.quiet_frame(ax)


def shortened(name: str) -> str:
    return name if len(name) <= WIDEST_NAME else name[: WIDEST_NAME - 1] + "…"
