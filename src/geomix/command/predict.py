"""``geomix predict``: answers for a file of rows of any length, in the memory of a few blocks."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from geomix.command import options
from geomix.command.exit_codes import DATA, Failure, blamed_on, usage
from geomix.command.messages import is_watched, note, warn

EXAMPLES = """\
  geomix predict m.geomix new.csv -o answers.csv --id customer
  geomix predict m.geomix new.parquet -o answers.parquet --proba --explain
  zcat new.csv.gz | geomix predict m.geomix - | head
"""
MOST_NAMED = 10


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "predict", "answer a file of rows", EXAMPLES)
    options.add_model(parser)
    parser.add_argument("data", metavar="FILE", help="rows; '-' is standard input")
    parser.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help=".csv, .tsv (also with .gz) or .parquet; default: CSV on standard output",
    )
    parser.add_argument(
        "--id",
        action="append",
        default=[],
        metavar="COL",
        help="a column to pass through as it is (repeatable)",
    )
    parser.add_argument("--keep", action="store_true", help="pass all columns through")
    parser.add_argument(
        "--target", metavar="COL", help="labels, if there are some: figures on standard error"
    )
    parser.add_argument("--proba", action="store_true", help="the probability of every class")
    parser.add_argument(
        "--explain", action="store_true", help="the runner-up, and the columns that decided"
    )
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    parser.add_argument(
        "--raw", action="store_true", help="do not guard cells that a spreadsheet would run"
    )
    parser.add_argument(
        "--unknown",
        choices=("allow", "error"),
        default="allow",
        help="levels that training did not know (default: allow)",
    )
    parser.add_argument(
        "--strict-columns",
        action="store_true",
        help="columns that the model does not know are an error",
    )
    options.add_reading(parser)
    parser.set_defaults(run=run)


def run(a: Any) -> int:
    from geomix.command.predictions import Answering
    from geomix.tablefile import open_table
    from geomix.tablefile.alignment import align
    from geomix.tablefile.writer import table_writer

    options.refuse_same_file(a.output, a.data, a.model)
    if a.output != "-" and os.path.isfile(a.output) and not a.force:
        raise usage(f"{os.fsdecode(a.output)} exists; give --force to replace it")
    options.check_folder(a.output)
    how = options.reading(a)
    model = options.loaded(a.model)
    table = open_table(a.data, how, rereadable=False)
    alignment = align(table, model, others=[*a.id, a.target], refuses_unknown=a.unknown == "error")
    note(a, [*table.notes, *alignment.notes])
    if not a.keep:
        _tell_ignored(alignment, a)
    answering = Answering(
        alignment, _passed_through(a, table), proba=a.proba, explain=a.explain, target=a.target
    )
    with (
        blamed_on(DATA),
        table_writer(a.output, answering.names, raw=a.raw) as write,
        _bar(a) as bar,
    ):
        for columns, n_rows in answering.blocks():
            write(columns)
            if bar is not None:
                bar.update(n_rows)
    _tell_unknown(alignment, answering.n_empty)
    note(a, answering.figures())
    return 0


def _passed_through(a: Any, table: Any) -> list[str]:
    return list(table.names) if a.keep else list(dict.fromkeys(a.id))


def _tell_ignored(alignment: Any, a: Any) -> None:
    facts = alignment.model.training or {}
    expected = {facts.get("target"), *facts.get("left_out", ())}
    names = [name for name in alignment.ignored if name not in expected]
    if not names:
        return
    listed = ", ".join(map(repr, names[:MOST_NAMED])) + (", ..." if len(names) > MOST_NAMED else "")
    text = f"{alignment.table.name}: columns that the model does not know: {listed}"
    if a.strict_columns:
        raise Failure(DATA, f"{text} (--strict-columns)")
    warn(f"{text}; they are ignored.")


def _tell_unknown(alignment: Any, n_empty: int) -> None:
    for name, count in alignment.unknown.items():
        if count:
            warn(f"Column {name!r}: {count} cells hold levels that training did not know.")
    if n_empty:
        warn(f"{n_empty} rows have no value in any column of the model.")


def _bar(a: Any) -> Any:
    """A line that counts rows; None if nobody watches (even a silent tqdm starts a thread)."""
    if not is_watched(a):
        return contextlib.nullcontext()
    from tqdm import tqdm

    return tqdm(desc="geomix predict", unit=" rows", unit_scale=True)
