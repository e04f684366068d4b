"""The model and the rows of a command, read from the paths in its arguments."""

from __future__ import annotations

from typing import Any

from geomix.command.exit_codes import DATA, exit_code_for_bad_values, usage_error
from geomix.command.messages import note
from geomix.command.options import load_model, read_options


def read_rows(args: Any, model: Any, path: Any, target: str | None = None) -> tuple[Any, Any]:
    """All rows of a file as an Arrow table, and their labels if ``target`` is given."""
    options_of_reading = read_options(args)
    from geomix.command.metrics import read_all_rows
    from geomix.tablefile import open_table
    from geomix.tablefile.alignment import align

    with exit_code_for_bad_values(DATA):
        table = open_table(path, options_of_reading, rereadable=False)
        alignment = align(table, model, others=[target])
        note(args, [*table.notes, *alignment.notes])
        return read_all_rows(alignment, target)


def model_and_rows(args: Any) -> tuple[Any, Any, Any]:
    """The model, and the rows and labels if the arguments name a file of rows."""
    model = load_model(args.model)
    if args.data is None:
        if getattr(args, "target", None) is not None:
            raise usage_error("--target needs a file of rows")
        return model, None, None
    return model, *read_rows(args, model, args.data, getattr(args, "target", None))


def read_one_row(args: Any, model: Any) -> Any:
    """Row ``--row`` of the file, as an Arrow table of one row."""
    X, _ = read_rows(args, model, args.data)
    if args.row > X.num_rows:
        raise usage_error(f"got --row {args.row}; {args.data} has {X.num_rows} rows")
    return X.slice(args.row - 1, 1)
