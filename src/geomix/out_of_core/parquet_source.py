"""Rows of Parquet and Feather files as a source for a fit that never holds all of them.

Columns and labels keep the types that the files give them, so nothing is guessed from cells: that
is the whole difference to ``table_source``, which reads text as the command line does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from geomix.core.row_sums import Sums
from geomix.errors import SchemaError, TableFileError
from geomix.out_of_core.part_reader import PartReader
from geomix.out_of_core.scratch import scratch_rows
from geomix.out_of_core.survey import RowPart, Survey, survey_part, with_factors
from geomix.table.labels import plain_labels
from geomix.tablefile.byte_source import display_path, too_large
from geomix.tablefile.column_names import check_present
from geomix.tablefile.columnar import (
    missing_labels,
    stored_batches,
    stored_names,
    without_texts,
)
from geomix.tablefile.reader import ReadOptions
from geomix.tablefile.unchanged import UnchangedFile

CELLS_PER_BATCH = 2**20
ROWS_PER_BATCH = (1024, 65_536)


@dataclass(eq=False)
class ParquetSource:
    """The rows of Parquet and Feather files, in the order of the files and of the rows in each.

    reading : its missing cells count, besides null, and its limit on the size; None: neither
    """

    paths: tuple[str, ...]
    target: str
    columns: Any
    sample_weight: str | None
    scratch: Any
    reading: ReadOptions | None = None
    is_exact: bool = False  # files have one order, and float32 is twice as fast

    def __post_init__(self) -> None:
        self.n_rows = 0  # known after the survey
        self._watched = tuple(map(UnchangedFile, self.paths))

    def survey(
        self, seed: int, categorical_features: Any, factor_of: Mapping[Any, float] | None = None
    ) -> Survey:
        total: Survey | None = None
        offset = 0
        for part in self.parts():
            bar = None if total is None else total.sample.bar
            part = with_factors(part, factor_of)
            one = survey_part(part, offset, seed, categorical_features, bar)
            total = one if total is None else total + one
            offset += len(part)
        pyarrow_module("").default_memory_pool().release_unused()
        if total is None:
            raise ValueError(f"Found no rows in {', '.join(map(repr, self.paths[:3]))}.")
        self.n_rows = offset
        return total

    def sums(self, reader: PartReader) -> AbstractContextManager[Sums]:
        return scratch_rows(self.parts, reader, self.scratch, self.n_rows)

    def parts(self) -> Iterator[RowPart]:
        """The files some rows at a time."""
        for path, watched in zip(self.paths, self._watched, strict=True):
            try:
                yield from watched.read(partial(self._parts_of, path), len)
            except TableFileError as error:
                raise SchemaError(str(error)) from error
            except (pyarrow_module("lib").ArrowInvalid, OSError) as error:
                raise SchemaError(f"{path!r} cannot be read: {error}") from error

    def _parts_of(self, path: str) -> Iterator[RowPart]:
        return map(self._part, self._batches(path))

    def _part(self, batch: Any) -> RowPart:
        table = pyarrow_module("").Table.from_batches([batch])
        weight = None
        if self.sample_weight is not None:
            weight = np.asarray(table.column(self.sample_weight), dtype=np.float64)
        return RowPart(self._cells(table), self._labels(table), weight)

    def _cells(self, table: Any) -> Any:
        cells = table.select(list(self._features))
        if self.reading is None:
            return cells
        known = [without_texts(column, self.reading.missing) for column in cells.columns]
        return cells.from_arrays(known, names=cells.column_names)

    def _labels(self, table: Any) -> Any:
        missing = () if self.reading is None else missing_labels(self.reading)
        labels = without_texts(table.column(self.target), missing).to_numpy()
        return plain_labels(labels.tolist()) if labels.dtype == object else labels

    def _batches(self, path: str) -> Iterator[Any]:
        wanted = [*self._features, self.target]
        wanted += [] if self.sample_weight is None else [self.sample_weight]
        self._check_names(path, wanted)
        size = int(np.clip(CELLS_PER_BATCH // len(wanted), *ROWS_PER_BATCH))
        n_bytes = 0
        for batch in stored_batches(path, wanted, size):
            n_bytes += batch.nbytes
            if self.reading is not None and n_bytes > self.reading.max_decompressed:
                raise too_large(display_path(path), self.reading.max_decompressed)
            yield batch

    @cached_property
    def _features(self) -> tuple[str, ...]:
        if self.columns is not None:
            return tuple(self.columns)
        taken = {self.target, self.sample_weight}
        return tuple(name for name in stored_names(self.paths[0]) if name not in taken)

    def _check_names(self, path: str, wanted: list[str]) -> None:
        check_present(wanted, stored_names(path), path, "which the arguments name")


def pyarrow_module(module: str) -> Any:
    """pyarrow, or one of its modules by name."""
    import importlib

    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ImportError as error:
        raise ImportError(
            "fit_files reads Parquet and CSV with pyarrow; install it with "
            "pip install 'geomix[files]'."
        ) from error
