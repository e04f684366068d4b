"""``fit_files``: a model of Parquet or CSV files that are larger than memory.

Files are read by pyarrow, some ten thousand rows at a time: once to survey them, once to bring
them onto a scratch file (``spool``), from which all passes of training read. With
``scratch=False`` every pass decodes the files again.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from geomix.errors import SchemaError
from geomix.estimator import GeometricMixtureClassifier
from geomix.farfit import fit_estimator
from geomix.labels import plain_labels
from geomix.spool import Spool
from geomix.sums import PartSums, Sums
from geomix.survey import Classes, Part, Survey, survey_part
from geomix.way import Way

CELLS_PER_BATCH = 2**20
ROWS_PER_BATCH = (1024, 65_536)
CSV_BLOCK = 2**22  # bytes of text that are parsed at a time


def fit_files(
    paths: Any,
    target: str,
    *,
    columns: Any = None,
    sample_weight: str | None = None,
    scratch: Any = None,
    **parameters: Any,
) -> GeometricMixtureClassifier:
    """Fit a classifier on Parquet or CSV files that need not fit into memory.

    Parameters
    ----------
    paths : a path or a pattern such as "data/*.parquet", or a list of such. Files are read in
        the order of their names, and in the order of a list. ``.csv`` is CSV with a header,
        anything else Parquet.
    target : the column of labels.
    columns : the columns to learn from; None: all but the target and the weights.
    sample_weight : the column of row weights, or None.
    scratch : a folder for the scratch file, which takes at most 8 bytes for each cell (1 under a
        spline lift); None: where temporary files go; False: none, every pass decodes anew.
    parameters : those of ``GeometricMixtureClassifier``; "adam", committees and early stopping
        need rows in memory.

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
    estimator = GeometricMixtureClassifier(**parameters)
    estimator.recipe()
    source = FileSource(tuple(_found(paths)), target, columns, sample_weight, scratch)
    return fit_estimator(estimator, source)


def _found(paths: Any) -> list[str]:
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: list[str] = []
    for path in given:
        one: str = os.fspath(path)
        is_pattern = glob.has_magic(one) and not Path(one).exists()
        matches = sorted(glob.glob(one)) if is_pattern else [one]
        found += matches
        if not matches:
            raise FileNotFoundError(f"No file matches {one!r}.")
    for one in found:
        if not Path(one).is_file():
            raise FileNotFoundError(f"{one!r} is not a file; expected Parquet or CSV.")
    if not found:
        raise FileNotFoundError("Got no path; expected a file, a pattern, or a list of such.")
    return found


@dataclass(eq=False)
class FileSource:
    """The rows of some files, in the order of the files and of the rows in each.

    labels_are_integers : known of CSV files when they have been surveyed.
    """

    paths: tuple[str, ...]
    target: str
    columns: Any
    sample_weight: str | None
    scratch: Any
    labels_are_integers: bool = False
    is_exact: bool = False  # files have one order, and float32 is twice as fast

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
        if _is_csv(self.paths[0]) and all(map(_is_integer, total.classes.labels.tolist())):
            self.labels_are_integers = True
            return _with_integer_labels(total)
        return total

    @contextmanager
    def sums(self, way: Way) -> Iterator[Sums]:
        if self.scratch is False:
            yield PartSums(
                lambda: (
                    block
                    for part in self.parts()
                    if len(rows := way.stored(part))
                    for block in way.blocks(rows)
                )
            )
            return
        with Spool(self.scratch) as spool:
            spool.need(self._n_rows_at_most * (len(way.table) + 16))
            for part in self.parts():
                rows = way.stored(part)
                if len(rows):
                    spool.append(rows)
            yield PartSums(lambda: (block for rows in spool for block in way.blocks(rows)))

    @property
    def _n_rows_at_most(self) -> int:
        """Rows of the Parquet files; what CSV files have is known when they have been read."""
        parquet = _pyarrow("parquet")
        return sum(parquet.read_metadata(path).num_rows for path in self.paths if not _is_csv(path))

    def parts(self) -> Iterator[Part]:
        """The files some rows at a time."""
        for path in self.paths:
            try:
                for batch in self._batches(path):
                    yield self._part(batch)
            except _pyarrow("lib").ArrowInvalid as error:
                raise SchemaError(f"{path!r} cannot be read: {error}") from error

    def _part(self, batch: Any) -> Part:
        table = _pyarrow("").Table.from_batches([batch])
        weight = None
        if self.sample_weight is not None:
            weight = np.asarray(table.column(self.sample_weight), dtype=np.float64)
        y = _labels(table.column(self.target), as_integers=self.labels_are_integers)
        return Part(table.select(list(self._features)), y, weight)

    def _batches(self, path: str) -> Iterator[Any]:
        wanted = [*self._features, self.target]
        wanted += [] if self.sample_weight is None else [self.sample_weight]
        self._check_names(path, wanted)
        size = int(np.clip(CELLS_PER_BATCH // len(wanted), *ROWS_PER_BATCH))
        if _is_csv(path):
            yield from _csv_batches(path, wanted, self._csv_types)
            return
        # Neither a whole row group nor a whole column of it is ever in memory.
        file = _pyarrow("parquet").ParquetFile(path, buffer_size=2**17, pre_buffer=False)
        with file:
            for batch in file.iter_batches(batch_size=size, columns=wanted):
                yield batch.select(wanted)

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

    @cached_property
    def _csv_types(self) -> dict[str, Any]:
        """Types for CSV files, from the first block of the first: whole numbers may turn out to
        have fractions later on, and labels are text until all of them are known."""
        lib = _pyarrow("")
        first = next(path for path in self.paths if _is_csv(path))
        with _pyarrow("csv").open_csv(first, read_options=_csv_options()) as reader:
            found = {field.name: field.type for field in reader.schema}
        types = {
            name: lib.float64() if lib.types.is_integer(kind) or lib.types.is_null(kind) else kind
            for name, kind in found.items()
        }
        return types | {self.target: lib.string()}


def _is_integer(label: Any) -> bool:
    """Whether a text is a whole number, written plainly."""
    try:
        return str(int(label)) == label
    except ValueError:
        return False


def _with_integer_labels(survey: Survey) -> Survey:
    classes, sample = survey.classes, survey.sample
    labels = np.array([int(label) for label in classes.labels.tolist()])
    order = np.argsort(labels)
    return replace(
        survey,
        classes=Classes(labels[order], classes.n_rows[order], classes.weight[order]),
        sample=replace(sample, y=np.array([int(label) for label in sample.y.tolist()])),
    )


def _labels(column: Any, *, as_integers: bool) -> Any:
    if as_integers:
        return np.array([int(label) for label in column.to_pylist()], dtype=np.int64)
    labels = column.to_numpy()
    return plain_labels(labels.tolist()) if labels.dtype == object else labels


def _is_csv(path: str) -> bool:
    return path.lower().endswith(".csv")


def _names(path: str) -> list[str]:
    if _is_csv(path):
        with _pyarrow("csv").open_csv(path, read_options=_csv_options()) as reader:
            return list(reader.schema.names)
    return list(_pyarrow("parquet").read_schema(path).names)


def _csv_options() -> Any:
    return _pyarrow("csv").ReadOptions(block_size=CSV_BLOCK)


def _csv_batches(path: str, wanted: list[str], types: dict[str, Any]) -> Iterator[Any]:
    csv = _pyarrow("csv")
    # Only the empty cell is missing where labels and levels are: "NA" may be a name.
    convert = csv.ConvertOptions(
        column_types={name: types[name] for name in wanted if name in types},
        include_columns=wanted,
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=["", "nan", "NaN"],
    )
    with csv.open_csv(path, read_options=_csv_options(), convert_options=convert) as reader:
        yield from reader


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
