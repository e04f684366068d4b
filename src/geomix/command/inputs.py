"""The model and the rows of a command, read from the paths in its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from geomix.command.exit_codes import DATA, exit_code_for_bad_values, usage_error
from geomix.command.messages import note, warn, warn_of_unknown
from geomix.command.options import load_model, read_options


def blocks_of_rows(args: Any, model: Any, path: Any, target: str | None = None) -> Iterator[Any]:
    """The rows of a file with the model's columns, block by block; raises if there are none."""
    options_of_reading = read_options(args)
    from geomix.errors import TableFileError
    from geomix.tablefile import open_table
    from geomix.tablefile.alignment import align

    with exit_code_for_bad_values(DATA):
        table = open_table(path, options_of_reading, rereadable=False, expected=model.columns)
        alignment = align(table, model, others=[target])
        note(args, [*table.notes, *alignment.notes])
        is_empty = True
        for rows in alignment.rows(target=target):
            if rows.block.n_rows:
                is_empty = False
                yield rows
        if is_empty:
            raise TableFileError(f"{table.name}: no rows.")
        warn_of_unknown(alignment)


def read_rows(args: Any, model: Any, path: Any, target: str | None = None) -> Any:
    """The rows of a file, of a large one an even sample: a ``SampledRows``."""
    from geomix.command.row_sample import EvenSample, sample_size

    sample = EvenSample(sample_size(len(model.columns)))
    for rows in blocks_of_rows(args, model, path, target):
        sample.add(rows)
    return sample.rows()


def model_and_rows(args: Any) -> tuple[Any, Any]:
    """The model, and a ``SampledRows`` if the arguments name a file of rows."""
    model = load_model(args.model)
    if args.data is None:
        if getattr(args, "target", None) is not None:
            raise usage_error("--target needs a file of rows")
        return model, None
    return model, read_rows(args, model, args.data, getattr(args, "target", None))


def read_one_row(args: Any, model: Any) -> Any:
    """Row ``--row`` of the file, as an Arrow table of one row."""
    first = 0
    for rows in blocks_of_rows(args, model, args.data):
        if args.row <= first + rows.X.num_rows:
            row = rows.X.slice(args.row - 1 - first, 1)
            _warn_of_unknown_cells(model, row)
            return row
        first += rows.X.num_rows
    raise usage_error(f"got --row {args.row}; {args.data} has {first} rows")


def _warn_of_unknown_cells(model: Any, row: Any) -> None:
    from geomix.explain.cells import model_schema

    for column, cells in zip(model_schema(model).columns, row.columns, strict=True):
        (cell,) = cells.to_pylist()
        if column.kind == "category" and cell is not None and cell not in column.levels:
            warn(f"Column {column.name!r}: {str(cell)[:80]!r} is not a level of the training data.")
