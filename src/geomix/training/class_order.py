"""The order of the classes during training, which does not depend on their labels.

Sums over classes round differently in another order, and training amplifies that. So the classes
are trained in an order of their own: by their weight, and where weights are equal by the mean
position of their rows. Reversed or renamed labels then change no bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geomix.arrays import BoolArray, FloatArray, IntArray
from geomix.training.rows import DECIMALS, Rows, column_range, row_keys


def class_order(rows: Rows, n_classes: int, is_category: BoolArray) -> IntArray:
    """(n_classes,) codes of the classes in the order of training.

    is_category : (n_columns,) columns of levels, whose codes depend on their names, are left out
    """
    mass: FloatArray = np.bincount(rows.y, rows.weight, n_classes).astype(np.float64)
    share = np.round(mass / mass.sum(), DECIMALS)
    if len(np.unique(share)) == n_classes:
        return np.argsort(-share)
    columns = column_range(rows.X)
    numbers = [j for j in columns.varying.tolist() if not is_category[j]]
    keys = row_keys(rows.X, columns, {}, only=numbers)
    moments = [_mean(keys**power, rows, mass) for power in (1, 2, 3)]
    # The last key of lexsort counts first; classes that agree in everything keep their order.
    return np.lexsort((*moments[::-1], -share))


def _mean(values: FloatArray, rows: Rows, mass: FloatArray) -> FloatArray:
    """(n_classes,) weighted mean of ``values`` over the rows of each class."""
    total = np.bincount(rows.y, rows.weight * values, len(mass))
    return np.round(total / np.maximum(mass, np.finfo(float).tiny), DECIMALS)


def in_class_order(rows: Rows, order: IntArray) -> Rows:
    """The rows with codes into the classes of ``order``."""
    return replace(rows, y=np.argsort(order)[rows.y])
