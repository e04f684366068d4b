"""What a table over each pair of columns would add to a model: the reference for the native one.

gain = sum over cells and classes of (G^2 - V) / (H + 1),   G, H, V sums over the cell's rows
"""

from __future__ import annotations

import numpy as np

from geomix.arrays import FloatArray, IntArray


def pair_gains(bins: IntArray, terms: FloatArray, n_bins: int) -> FloatArray:
    """(n_columns, n_columns) gain of each pair in the upper triangle, of a column alone on the
    diagonal.

    bins : (n_columns, n_rows) below ``n_bins``;  terms : (n_rows, 3 n_classes), what each row adds
    to G, H and V of every class.
    """
    gains = np.zeros((len(bins), len(bins)))
    for j, first in enumerate(bins.astype(np.intp)):
        for k in range(j, len(bins)):
            cells = first * n_bins + bins[k]
            sums = np.stack([np.bincount(cells, one, n_bins**2) for one in terms.T])
            G, H, V = sums.reshape(3, -1, n_bins**2)
            gains[j, k] = ((G**2 - V) / (H + 1.0)).sum()
    return gains
