"""A model and rows to ask it about, for the commands that read models."""

from __future__ import annotations

from typing import Any

from geomix.command.exit_codes import DATA, blamed_on, usage
from geomix.command.messages import note
from geomix.command.options import loaded, reading


def rows_of(a: Any, model: Any, path: Any, target: str | None = None) -> tuple[Any, Any]:
    """All rows of a file for a model, as an Arrow table, and their labels if a target is given."""
    how = reading(a)
    from geomix.command.metrics import whole_file
    from geomix.tablefile import open_table
    from geomix.tablefile.alignment import align

    with blamed_on(DATA):
        table = open_table(path, how, rereadable=False)
        alignment = align(table, model, others=[target])
        note(a, [*table.notes, *alignment.notes])
        return whole_file(alignment, target)


def model_and_rows(a: Any) -> tuple[Any, Any, Any]:
    """The model, and the rows and labels if a file of them was given."""
    model = loaded(a.model)
    if a.data is None:
        if getattr(a, "target", None) is not None:
            raise usage("--target needs a file of rows")
        return model, None, None
    return model, *rows_of(a, model, a.data, getattr(a, "target", None))


def one_row(a: Any, model: Any) -> Any:
    """Row --row of the file, as an Arrow table."""
    X, _ = rows_of(a, model, a.data)
    if a.row > X.num_rows:
        raise usage(f"got --row {a.row}; {a.data} has {X.num_rows} rows")
    return X.slice(a.row - 1, 1)
