"""Window: two columns of a model as a grid of rows to predict, the other columns held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from geomix.arrays import FloatArray, IntArray
from geomix.model import GeometricMixture
from geomix.plots.grid import Grid, grid_around
from geomix.plots.inputs import check_model, check_two_columns, labelled_rows, two_columns


@dataclass(frozen=True, eq=False)
class Window:
    """columns, places : names and places of the two;  grid : its points, rows : the same as
    encoded rows, with ``held`` elsewhere;  points, codes : the caller's rows in the two columns,
    and their classes."""

    columns: tuple[str, str]
    places: tuple[int, int]
    held: FloatArray
    grid: Grid
    rows: FloatArray
    points: FloatArray
    codes: IntArray


def window_on(
    model: GeometricMixture,
    X: Any,
    y: Any,
    columns: Any,
    hold: Any,
    resolution: int,
    display: str,
) -> Window:
    """A window around the rows of ``X``; ``display`` is the name in messages."""
    check_model(model)
    if columns is None:
        check_two_columns(model, display)
    X, codes = labelled_rows(model, X, y)
    encoded, places, held = two_columns(model, X, columns, hold)
    points = encoded[:, list(places)]
    grid = grid_around(points, resolution)
    names = (model.columns[places[0]], model.columns[places[1]])
    return Window(names, places, held, grid, grid.rows(places, held), points, codes)
