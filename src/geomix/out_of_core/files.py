"""``fit_files``: a model of files that are larger than memory.

Files are read by pyarrow, some ten thousand rows at a time: once to survey them, once to write
them to a scratch file (``scratch``), from which all passes of training read. With
``scratch=False`` every pass decodes the files again. Files that all store types (Parquet, Feather)
are a ``ParquetSource``, all others a ``TableSource``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geomix.errors import SchemaError, TableFileError
from geomix.out_of_core.fit import fit_estimator
from geomix.out_of_core.parquet_source import ParquetSource, pyarrow_module
from geomix.out_of_core.table_source import TableSource
from geomix.tablefile.byte_source import FEATHER, PARQUET, form_of
from geomix.tablefile.column_names import check_present
from geomix.tablefile.multiple_files import expand_paths, open_tables

if TYPE_CHECKING:
    from geomix.estimator import GeometricMixtureClassifier


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
    reading : a ``geomix.tablefile.ReadOptions`` with delimiter, encoding and marks of numbers of
        text files, and with cells that mean missing; None: found, as the command line does.
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

    pyarrow_module("lib")
    estimator = GeometricMixtureClassifier(**routed(parameters))
    estimator.settings()
    columns = _checked_columns(target, columns, sample_weight)
    found = _files(paths)
    try:
        if all(form_of(path) in (PARQUET, FEATHER) for path in found):
            typed = ParquetSource(tuple(found), target, columns, sample_weight, scratch, reading)
            return fit_estimator(estimator, typed)
        source = _table_source(found, target, columns, sample_weight, scratch, reading)
        return fit_estimator(estimator, source)
    except TableFileError as error:
        raise SchemaError(f"{', '.join(map(repr, found[:3]))} cannot be read: {error}") from error


def _checked_columns(
    target: str, columns: Any, sample_weight: str | None
) -> tuple[str, ...] | None:
    """The columns to learn from; raises if one has two roles, or if there are none."""
    if sample_weight is not None and sample_weight == target:
        raise ValueError(f"Got {target!r} as target and as sample_weight; expected two columns.")
    if columns is None:
        return None
    if isinstance(columns, str):
        raise ValueError(f"Got columns={columns!r}; expected a list of names, or None for all.")
    names = list(columns)
    if not names:
        raise ValueError("Got columns=[]; expected at least one column, or None for all.")
    for name in names:
        if names.count(name) > 1 or name in (target, sample_weight):
            raise ValueError(
                f"Got columns={names!r}; {name!r} is there twice, or is the target or the weight."
            )
    return tuple(names)


def _files(paths: Any) -> list[str]:
    found = [os.fsdecode(path) for path in expand_paths(paths)]
    for one in found:
        if not Path(one).is_file():
            raise FileNotFoundError(f"{one!r} is not a file; expected a table of rows.")
    return found


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
