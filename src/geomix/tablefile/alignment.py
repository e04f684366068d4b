"""Rows of a file with the columns of a model, in the model's order.

Columns are matched by name. Missing columns are an error, further columns are ignored, and cells
with levels that are not in the training data are counted.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.errors import SchemaError, TableFileError
from geomix.explain.cells import model_schema
from geomix.model import GeometricMixture
from geomix.table.labels import codes_by_text
from geomix.table.printing import printable
from geomix.table.schema import Column
from geomix.tablefile.block import LABEL, NUMBER, RAW, TEXT, Block, TableFile
from geomix.tablefile.column_names import check_present
from geomix.tablefile.dialect import IS_NUMBER

NO_LABEL = "the label is missing."
BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


@dataclass
class AlignedRows:
    """Rows for a model. X : Arrow table of its columns;  labels, weight : (n,) or None;
    raw : Arrow columns of text as it is in the file, by name."""

    X: Any
    block: Block
    labels: Any = None
    weight: FloatArray | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Alignment:
    """Which column of a file is which column of a model.

    source : the file's column for each column of the model;  ignored : columns without a use
    unknown : number of cells so far with a level that is not in the training data, by column
    """

    table: TableFile
    model: GeometricMixture
    source: tuple[str, ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...]
    unknown: collections.Counter[str] = field(default_factory=collections.Counter)
    refuses_unknown: bool = False

    def rows(
        self,
        *,
        target: str | None = None,
        weight: str | None = None,
        raw: Sequence[str] = (),
    ) -> Iterator[AlignedRows]:
        """The rows of the file, block by block; ``raw`` : names of columns to copy as text."""
        kinds = dict(zip(self.source, self._kinds(), strict=True))
        for name, kind in ((target, LABEL), (weight, NUMBER)):
            if name in kinds:
                raise SchemaError(f"The column {name!r} is a feature of the model.")
            if name is not None:
                kinds[name] = kind
        # A column can be read as numbers and be copied as text at the same time.
        kinds |= {name: RAW for name in raw if name not in kinds}
        twice = [name for name in raw if kinds[name] != RAW]
        for block in self.table.blocks(kinds, twice):
            rows = AlignedRows(self._frame(block), block)
            rows.raw = {name: block.raw.get(name, block.columns[name]) for name in raw}
            if target is not None:
                rows.labels = known_labels(self.model, block, target, self.table.name)
            if weight is not None:
                rows.weight = row_weights(block, weight, self.table.name)
            yield rows

    def _kinds(self) -> list[str]:
        columns = model_schema(self.model).columns
        return [NUMBER if column.kind == "number" else TEXT for column in columns]

    def _frame(self, block: Block) -> Any:
        import pyarrow

        made = {}
        for column, name in zip(model_schema(self.model).columns, self.source, strict=True):
            cells = block.columns[name]
            made[column.name] = (
                cells if column.kind == "number" else self._levels(column, cells, block)
            )
        return pyarrow.table(made)

    def _levels(self, column: Column, cells: Any, block: Block) -> Any:
        import pyarrow

        parts = []
        for part in cells.chunks:
            texts = part.dictionary.to_pylist()
            levels = [level_of(column, text) for text in texts]
            unknown_codes = [
                code for code, level in enumerate(levels) if level not in column.levels
            ]
            if unknown_codes:
                self._count_unknown(column, part, unknown_codes, texts, block)
            parts.append(
                pyarrow.DictionaryArray.from_arrays(part.indices, _arrow_levels(levels, column))
            )
        return pyarrow.chunked_array(parts, parts[0].type if parts else cells.type)

    def _count_unknown(
        self, column: Column, part: Any, unknown_codes: list[int], texts: list[str], block: Block
    ) -> None:
        found = np.isin(part.indices.fill_null(-1).to_numpy(), unknown_codes)
        if found.any() and self.refuses_unknown:
            row = int(found.argmax())
            raise TableFileError(
                f"{self.table.name}, {block.place(row)}, column {column.name!r}: "
                f"{texts[part.indices[row].as_py()][:80]!r} is not a level of the "
                "training data."
            )
        self.unknown[column.name] += int(found.sum())


def align(
    table: TableFile,
    model: GeometricMixture,
    *,
    others: Sequence[str | None] = (),
    refuses_unknown: bool = False,
) -> Alignment:
    """Match the columns of a file with those of a model; ``others`` must be in the file too."""
    source, ignored, notes = match_columns(table, model_schema(model).names, others)
    return Alignment(table, model, source, ignored, notes, refuses_unknown=refuses_unknown)


Names = tuple[str, ...]


def match_columns(
    table: TableFile, names: Names, others: Sequence[str | None]
) -> tuple[Names, Names, Names]:
    """The file's column for each of ``names``, the columns without a use, and notes.

    ``others`` must be in the file too.
    """
    extra = [name for name in others if name is not None]
    check_present(extra, table.names, table.name, "which the options name")
    unnamed = names == tuple(f"x{j}" for j in range(len(names)))
    notes: list[str] = []
    given = tuple(name for name in table.names if name not in extra)
    if unnamed and not set(names) <= set(given) and len(given) == len(names):
        source = given
        notes.append("the model's columns have no names: columns are matched by position")
    else:
        what = "which the model needs"
        check_present(names, [*given, *extra], table.name, what)
        source = names
        if tuple(name for name in table.names if name in set(names)) != names:
            notes.append(f"{table.name}: columns are matched by name; their order differs")
    ignored = tuple(name for name in given if name not in set(source))
    return source, ignored, tuple(notes)


def level_of(column: Column, text: str) -> Any:
    """The level of a cell: its text, or its number or boolean if the levels are such."""
    if not column.levels or any(isinstance(level, str) for level in column.levels):
        return text
    if all(isinstance(level, bool) for level in column.levels):
        return BOOLEANS.get(text.strip().casefold(), text)
    if IS_NUMBER.fullmatch(text):
        number = float(text)
        return int(number) if number.is_integer() else number
    return text


def _arrow_levels(levels: list[Any], column: Column) -> Any:
    import pyarrow

    kinds = {type(level) for level in levels}
    if kinds <= {int, float} and len(kinds) == 2:
        return pyarrow.array([float(level) for level in levels])
    if len(kinds) > 1:
        odd = next(level for level in levels if isinstance(level, str))
        raise SchemaError(
            f"Column {column.name!r} holds {odd[:80]!r}, but its levels were "
            f"numbers in training, such as {column.levels[0]!r}."
        )
    return pyarrow.array(levels)


# --- labels and weights ---


def row_weights(block: Block, name: str, file: str) -> FloatArray:
    """(n,) weights of a block's rows, all of them finite numbers of at least 0."""
    weight = np.asarray(block.columns[name].to_numpy(), dtype=np.float64)
    for is_bad, problem in (
        (np.isnan(weight), "the weight is missing"),
        (np.isinf(weight), "the weight is infinite"),
        (weight < 0.0, "the weight is negative"),
    ):
        if is_bad.any():
            row = int(is_bad.argmax())
            held = "" if np.isnan(weight[row]) else f" ({weight[row]:g})"
            raise TableFileError(
                f"{file}, {block.place(row)}, column {name!r}: {problem}{held}; correct it, or "
                "leave the row out."
            )
    return weight


def known_labels(model: GeometricMixture, block: Block, target: str, file: str) -> Any:
    """(n,) labels of a block's rows, all of them classes of the model."""
    codes: list[IntArray] = []
    first = 0
    for part in block.columns[target].chunks:
        indices = part.indices.fill_null(-1).to_numpy()
        texts = part.dictionary.to_pylist()
        found = np.array([*_text_codes(texts, model.classes), -1], dtype=np.intp)[indices]
        if (found < 0).any():
            row = int((found < 0).argmax())
            where = f"{file}, {block.place(first + row)}, column {target!r}"
            raise TableFileError(f"{where}: {_label_problem(texts, indices[row], model.classes)}")
        codes.append(found)
        first += len(part)
    return model.classes[np.concatenate(codes)] if codes else model.classes[:0]


def check_labelled(block: Block, target: str, file: str) -> None:
    """Raise if a row has no label."""
    is_missing = np.asarray(block.columns[target].is_null())
    if is_missing.any():
        place = block.place(int(is_missing.argmax()))
        raise TableFileError(f"{file}, {place}, column {target!r}: {NO_LABEL}")


def _text_codes(texts: list[str], classes: Any) -> list[int]:
    """Codes of the classes that texts name, or -1; booleans in upper or lower case."""
    by_text = codes_by_text(classes)
    if classes.dtype.kind == "f":  # Python writes 1.0, and Arrow 1
        by_number = {float(text): code for text, code in by_text.items()}
        return [by_number.get(float(t), -1) if IS_NUMBER.fullmatch(t) else -1 for t in texts]
    keys = map(str.casefold, texts) if classes.dtype.kind == "b" else texts
    return [by_text.get(key, -1) for key in keys]


def _label_problem(texts: list[str], index: int, classes: Any) -> str:
    if index < 0:
        return NO_LABEL
    known = list(codes_by_text(classes))
    listed = ", ".join(map(printable, known[:5])) + (", ..." if len(known) > 5 else "")
    return f"{texts[index][:80]!r} is not a class of the model; its classes are {listed}."
