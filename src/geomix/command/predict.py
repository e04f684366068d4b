"""``geomix predict``: predictions for a file of rows, block by block."""

from __future__ import annotations

import contextlib
from typing import Any

from geomix.command import options
from geomix.command.exit_codes import DATA, CommandError, exit_code_for_bad_values
from geomix.command.messages import is_interactive, note, warn, warn_of_unknown

EXAMPLES = """\
  geomix predict m.geomix new.csv -o predictions.csv --id customer
  geomix predict m.geomix new.parquet -o predictions.parquet --proba --explain
  zcat new.csv.gz | geomix predict m.geomix - | head
"""
MOST_NAMED = 10


def add(commands: Any) -> None:
    parser = options.new_parser(
        commands, "predict", "predict the classes of a file of rows", EXAMPLES
    )
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
        help="a column to copy to the output (repeatable)",
    )
    parser.add_argument("--keep", action="store_true", help="copy all columns to the output")
    parser.add_argument(
        "--target", metavar="COL", help="column of labels; metrics are printed on standard error"
    )
    parser.add_argument("--proba", action="store_true", help="add the probability of every class")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="add the second most probable class and the largest contributions",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing output")
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="put an apostrophe before text cells that a spreadsheet would run as formulas",
    )
    parser.add_argument(
        "--unknown",
        choices=("allow", "error"),
        default="allow",
        help="levels that are not in the training data (default: allow)",
    )
    parser.add_argument(
        "--strict-columns",
        action="store_true",
        help="refuse columns that the model does not use",
    )
    options.add_read_options(parser)
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.command.predictions import PredictionTable
    from geomix.tablefile import open_table
    from geomix.tablefile.alignment import align
    from geomix.tablefile.writer import output_form, table_writer

    output_form(args.output)
    options.check_output_is_no_input(args.output, args.data, args.model)
    options.check_no_overwrite(args)
    options.check_writable(args.output)
    how_to_read = options.read_options(args)
    model = options.load_model(args.model)
    table = open_table(args.data, how_to_read, rereadable=False, expected=model.columns)
    alignment = align(
        table, model, others=[*args.id, args.target], refuses_unknown=args.unknown == "error"
    )
    note(args, [*table.notes, *alignment.notes])
    _report_ignored_columns(alignment, args)
    predictions = PredictionTable(
        alignment,
        _kept_columns(args, table),
        proba=args.proba,
        explain=args.explain,
        target=args.target,
    )
    with (
        exit_code_for_bad_values(DATA),
        table_writer(args.output, predictions.names, escape_formulas=args.escape_formulas) as write,
        _progress_bar(args) as bar,
    ):
        for columns, n_rows in predictions.blocks():
            write(columns)
            if bar is not None:
                bar.update(n_rows)
        # Before the output is complete, so that --strict leaves none.
        warn_of_unknown(alignment)
        _warn_of_empty(predictions.n_empty_rows)
    note(args, predictions.metrics())
    return 0


def _kept_columns(args: Any, table: Any) -> list[str]:
    return list(table.names) if args.keep else list(dict.fromkeys(args.id))


def _report_ignored_columns(alignment: Any, args: Any) -> None:
    facts = alignment.model.training or {}
    expected = {facts.get("target"), *facts.get("left_out", ())}
    names = [name for name in alignment.ignored if name not in expected]
    if not names:
        return
    listed = ", ".join(map(repr, names[:MOST_NAMED])) + (", ..." if len(names) > MOST_NAMED else "")
    text = f"{alignment.table.name}: columns that the model does not use: {listed}"
    if args.strict_columns:
        raise CommandError(DATA, f"{text} (--strict-columns)")
    if not args.keep:
        warn(f"{text}; they are ignored.")


def _warn_of_empty(n_empty_rows: int) -> None:
    if n_empty_rows:
        warn(f"{n_empty_rows} rows have no value in any column of the model.")


def _progress_bar(args: Any) -> Any:
    """A progress bar; None without a terminal, since even a disabled tqdm starts a thread."""
    if not is_interactive(args):
        return contextlib.nullcontext()
    from tqdm import tqdm

    return tqdm(desc="geomix predict", unit=" rows", unit_scale=True)
