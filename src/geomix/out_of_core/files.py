"""``fit_files``: a model of files that are larger than memory.

Files are read by pyarrow, some ten thousand rows at a time: once to survey them, once to bring
them onto a scratch file (``spool``), from which all passes of training read. With
``scratch=False`` every pass decodes the files again. Parquet is read here, with the types that its
columns have; all other files are read as the command line reads them (``tablesource``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geomix.core.row_sums import Sums
from geomix.errors import SchemaError, TableFileError
from geomix.out_of_core.file_source import TableSource
from geomix.out_of_core.fit import fit_estimator
from geomix.out_of_core.part_reader import PartReader
from geomix.out_of_core.scratch import scratch_rows
from geomix.out_of_core.survey import RowPart, Survey, survey_part
from geomix.table.labels import plain_labels
from geomix.tablefile.column_names import check_present
from geomix.tablefile.columnar import parquet_batches
from geomix.tablefile.multiple_files import expand_paths, open_tables
from geomix.tablefile.unchanged import UnchangedFile

if TYPE_CHECKING:
    from geomix.estimator import GeometricMixtureClassifier

CELLS_PER_BATCH = 2**20
ROWS_PER_BATCH = (1024, 65_536)


def fit_files(
    paths: Any,
    target: str,
    *,
    columns: Any = None,
    sample_weight: str | None = None,
    scratch: Any = None,
    reading: Any = None,
    **parameters: Any,
) -> GeometricMixtureClassifier:
    """Fit a classifier on files of rows that need not fit into memory.

    Parameters
    ----------
    paths : a path or a pattern such as "data/*.parquet", or a list of such. Files are read in
        the order of their names, and in the order of a list: Parquet, Feather, CSV, TSV, plain or
        compressed, recognised by their first bytes.
    target : the column of labels.
    columns : the columns to learn from; None: all but the target and the weights.
    sample_weight : the column of row weights, or None.
    scratch : a folder for the scratch file, which takes at most 8 bytes for each number and each
        level of a category (1 for each column under a spline lift) and 16 for each row; None:
        where temporary files go; False: none, every pass decodes anew.
    reading : a ``geomix.tablefile.ReadOptions`` with delimiter, encoding, marks of numbers and
        missing cells of text files; None: found, as the command line does.
    parameters : those of ``GeometricMixtureClassifier`` and of ``Recipe``; Adam, ensembles and
        early stopping need rows in memory.

    Returns
    -------
    A fitted ``GeometricMixtureClassifier``, as any other. Ctrl-C leaves nothing behind.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = "".join(f"{i % 7},{i % 2},{'ab'[i % 2]}\\n" for i in range(200))
    >>> _ = (folder / "part.csv").write_text("u,v,y\\n" + rows)
    >>> clf = fit_files(folder / "*.csv", target="y", lift="linear", random_state=0)
    >>> clf.predict(np.array([[3.0, 0.0], [3.0, 1.0]]))  # doctest: +SKIP
    array(['a', 'b'], dtype=object)
    """
    from geomix.estimator import GeometricMixtureClassifier, routed

    _pyarrow("lib")
    estimator = GeometricMixtureClassifier(**routed(parameters))
    estimator.settings()
    found = _files(paths)
    if reading is None and all(map(_is_parquet, found)):
        source = FileSource(tuple(found), target, columns, sample_weight, scratch)
        return fit_estimator(estimator, source)
    try:
        source = _table_source(found, target, columns, sample_weight, scratch, reading)
        return fit_estimator(estimator, source)
    except TableFileError as error:
        raise SchemaError(f"{', '.join(map(repr, found[:3]))} cannot be read: {error}") from error


def _files(paths: Any) -> list[str]:
    found = [os.fsdecode(path) for path in expand_paths(paths)]
    for one in found:
        if not Path(one).is_file():
            raise FileNotFoundError(f"{one!r} is not a file; expected a table of rows.")
    return found


def _is_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def _table_source(
    paths: list[str],
    target: str,
    columns: Any,
    sample_weight: str | None,
    scratch: Any,
    reading: Any,
) -> Any:
    table = open_tables(paths, reading)
    aside = [target] if sample_weight is None else [target, sample_weight]
    learnt = [name for name in table.names if name not in aside] if columns is None else columns
    check_present([*aside, *learnt], table.names, table.name, "which the arguments name")
    return TableSource(table, target, tuple(learnt), weight=sample_weight, scratch=scratch)


@dataclass(eq=False)
class FileSource:
    """The rows of Parquet files, in the order of the files and of the rows in each."""

    paths: tuple[str, ...]
    target: str
    columns: Any
    sample_weight: str | None
    scratch: Any
    is_exact: bool = False  # files have one order, and float32 is twice as fast

    def __post_init__(self) -> None:
        self.n_rows = 0  # known after the survey
        self._watched = tuple(map(UnchangedFile, self.paths))

    def survey(self, seed: int, categorical_features: Any) -> Survey:
        total: Survey | None = None
        offset = 0
        for part in self.parts():
            bar = None if total is None else total.sample.bar
            one = survey_part(part, offset, seed, categorical_features, bar)
            total = one if total is None else total + one
            offset += len(part)
        _pyarrow("").default_memory_pool().release_unused()
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
            except (_pyarrow("lib").ArrowInvalid, OSError) as error:
                raise SchemaError(f"{path!r} cannot be read: {error}") from error

    def _parts_of(self, path: str) -> Iterator[RowPart]:
        return map(self._part, self._batches(path))

    def _part(self, batch: Any) -> RowPart:
        table = _pyarrow("").Table.from_batches([batch])
        weight = None
        if self.sample_weight is not None:
            weight = np.asarray(table.column(self.sample_weight), dtype=np.float64)
        y = _labels(table.column(self.target))
        return RowPart(table.select(list(self._features)), y, weight)

    def _batches(self, path: str) -> Iterator[Any]:
        wanted = [*self._features, self.target]
        wanted += [] if self.sample_weight is None else [self.sample_weight]
        self._check_names(path, wanted)
        size = int(np.clip(CELLS_PER_BATCH // len(wanted), *ROWS_PER_BATCH))
        yield from parquet_batches(path, wanted, size)

    @cached_property
    def _features(self) -> tuple[str, ...]:
        if self.columns is not None:
            return tuple(self.columns)
        taken = {self.target, self.sample_weight}
        return tuple(name for name in _names(self.paths[0]) if name not in taken)

    def _check_names(self, path: str, wanted: list[str]) -> None:
        there = _names(path)
        if lost := [name for name in wanted if name not in there]:
            raise SchemaError(
                f"{path!r} has no column {', '.join(map(repr, lost))}; it has "
                f"{', '.join(map(repr, there[:20]))}."
            )


def _labels(column: Any) -> Any:
    labels = column.to_numpy()
    return plain_labels(labels.tolist()) if labels.dtype == object else labels


def _names(path: str) -> list[str]:
    return list(_pyarrow("parquet").read_schema(path).names)


def _pyarrow(module: str) -> Any:
    """pyarrow, or one of its modules; needed here alone."""
    import importlib

    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ImportError as error:
        raise ImportError(
            "fit_files reads Parquet and CSV with pyarrow; install it with "
            "pip install 'geomix[files]'."
        ) from error
