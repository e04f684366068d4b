"""The model and the rows of a command, read from the paths in its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from geomix.command.exit_codes import DATA, exit_code_for_bad_values, usage_error
from geomix.command.messages import note
from geomix.command.options import load_model, read_options


def blocks_of_rows(args: Any, model: Any, path: Any, target: str | None = None) -> Iterator[Any]:
    """The rows of a file with the model's columns, block by block; raises if there are none."""
    options_of_reading = read_options(args)
    from geomix.errors import TableFileError
    from geomix.tablefile import open_table
    from geomix.tablefile.alignment import align

    with exit_code_for_bad_values(DATA):
        table = open_table(path, options_of_reading, rereadable=False)
        alignment = align(table, model, others=[target])
        note(args, [*table.notes, *alignment.notes])
        is_empty = True
        for rows in alignment.rows(target=target):
            if rows.block.n_rows:
                is_empty = False
                yield rows
        if is_empty:
            raise TableFileError(f"{table.name}: no rows.")


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
            return rows.X.slice(args.row - 1 - first, 1)
        first += rows.X.num_rows
    raise usage_error(f"got --row {args.row}; {args.data} has {first} rows")
