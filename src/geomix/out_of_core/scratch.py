"""Rows on a scratch file, ready for any number of passes: written once, read block by block.

Decoding Parquet or CSV again would take most of the time of a pass. The file has no name, so it
disappears with the process, however that ends. It holds the numbers or codes, the classes and the
weights of each block, one after another. Blocks are read, not mapped, so that a pass takes the
memory of one block.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from geomix.core.row_sums import PartSums, Sums
from geomix.out_of_core.part_reader import PartReader, StoredRows
from geomix.out_of_core.survey import RowPart


@contextmanager
def scratch_rows(
    parts: Callable[[], Iterator[RowPart]], reader: PartReader, scratch: Any, n_rows: int
) -> Iterator[Sums]:
    """Sums over the rows of ``parts``, about ``n_rows``, through a scratch file in the folder
    ``scratch``; False: no such file, every pass reads the parts again."""
    if scratch is False:
        yield PartSums(
            lambda: (
                block
                for part in parts()
                if len(rows := reader.stored(part))
                for block in reader.blocks(rows)
            )
        )
        return
    with Scratch(scratch) as spool:
        for part in parts():
            rows = reader.stored(part)
            if len(rows):
                spool.append(rows)
                n_left = max(n_rows - spool.n_rows, 0)
                spool.need(n_left * spool.n_bytes // spool.n_rows)
        yield PartSums(lambda: (block for rows in spool for block in reader.blocks(rows)))


class Scratch:
    """A scratch file in ``folder`` (None: where temporary files go)."""

    def __init__(self, folder: str | os.PathLike[str] | None) -> None:
        self._folder = os.fspath(folder) if folder is not None else tempfile.gettempdir()
        # TemporaryFile closes itself; ``__exit__`` does so at once.
        self._file: Any = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        self._blocks: list[tuple[tuple[int, ...], Any]] = []

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def n_rows(self) -> int:
        return sum(shape[0] for shape, _ in self._blocks)

    @property
    def n_bytes(self) -> int:
        return int(self._file.tell())

    def need(self, n_bytes: int) -> None:
        """Raise an error if the rest would not fit on the disk."""
        free = shutil.disk_usage(self._folder).free
        if n_bytes > free:
            raise OSError(
                f"The scratch file needs about {n_bytes / 1e9:.1f} GB and {self._folder} has "
                f"{free / 1e9:.1f} GB free; give another folder as scratch (--scratch), or "
                "scratch=False to read the files anew in every pass."
            )

    def append(self, rows: StoredRows) -> None:
        X = np.ascontiguousarray(rows.X)
        self._blocks.append((X.shape, X.dtype))
        for part in (X, rows.y.astype(np.int64), rows.weight.astype(np.float64)):
            _write(self._file, part)

    def __iter__(self) -> Iterator[StoredRows]:
        self._file.seek(0)
        for shape, dtype in self._blocks:
            X = _read(self._file, shape, dtype)
            y = _read(self._file, shape[:1], np.int64)
            yield StoredRows(X, y, _read(self._file, shape[:1], np.float64))


def _write(file: Any, array: Any) -> None:
    view = memoryview(array).cast("B") if array.size else b""
    while len(view):
        view = view[file.write(view) :]


def _read(file: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    array: Any = np.empty(shape, dtype=dtype)
    view = memoryview(array).cast("B") if array.size else memoryview(b"")
    while len(view):
        n_read = file.readinto(view)
        if not n_read:
            raise OSError("The scratch file ends early; was the disk full?")
        view = view[n_read:]
    return array
