"""Synthetic rows for ``scale.py``: five classes of three modes each in 50 columns, float32.

Any block of rows can be made by itself, from its number, so that a partition on a cluster can
be made again where its worker died.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

N_COLUMNS, N_CLASSES, N_MODES = 50, 5, 3
ROWS_PER_BLOCK = 100_000
SPREAD = 0.42  # of the modes' centres; the noise around them is 1


def names() -> list[str]:
    return [f"x{j:02d}" for j in range(N_COLUMNS)]


def block(number: int, n_rows: int = ROWS_PER_BLOCK) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes of one block."""
    shape = N_CLASSES, N_MODES, N_COLUMNS
    centres = (SPREAD * np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
    rng = np.random.default_rng([1, number])
    y, mode = rng.integers(0, N_CLASSES, n_rows), rng.integers(0, N_MODES, n_rows)
    X = rng.standard_normal((n_rows, N_COLUMNS), dtype=np.float32)
    X += centres[y, mode]
    return X, y


def unseen(n_rows: int = 50_000) -> tuple[np.ndarray, np.ndarray]:
    return block(10**6, n_rows)


def write(folder: Path, n_rows: int, *, by_class: bool = False) -> Path:
    """Parquet files of the first ``n`` rows, five blocks each; the pattern that finds them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    blocks = [block(i) for i in range(n_rows // ROWS_PER_BLOCK)] if by_class else None
    if blocks is not None:
        X, y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        order = np.argsort(y, kind="stable")
        parts = [(X[rows], y[rows]) for rows in np.array_split(order, len(blocks))]
    for i in range(n_rows // ROWS_PER_BLOCK):
        X, y = block(i) if blocks is None else parts[i]
        columns = {name: X[:, j] for j, name in enumerate(names())}
        table = pa.table({**columns, "y": y.astype(np.int8)})
        pq.write_table(table, folder / f"{i:04d}.parquet", use_dictionary=False)
    return folder / "*.parquet"
