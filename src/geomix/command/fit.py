"""``geomix fit``: train a model on files of rows and write a model file."""

from __future__ import annotations

import argparse
import contextlib
import os
from types import SimpleNamespace
from typing import Any

from geomix.command import options
from geomix.command.exit_codes import usage_error
from geomix.command.messages import is_interactive, note

EXAMPLES = """\
  geomix fit train.csv --target y -o m.geomix --test 0.2
  geomix fit train.parquet --target y -o m.geomix --test test.parquet --id customer --drop notes
  geomix fit - --target y -o m.geomix --set lift=spline --set n_planes=4 < train.csv
  geomix fit train.csv --target y -o m.geomix --preset accurate
  geomix fit train.csv -o m.geomix --config recipe.toml
  geomix fit 'parts/*.csv.gz' --target y -o m.geomix --stream --test 0.1
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "fit", "train a model on a file of rows", EXAMPLES)
    parser.add_argument(
        "data",
        nargs="+",
        metavar="FILE",
        help="labelled rows: one or more files, or a pattern; '-' is standard input",
    )
    parser.add_argument("-o", "--output", metavar="MODEL", help="the .geomix file to write")
    parser.add_argument("--force", action="store_true", help="overwrite an existing model file")
    parser.add_argument("--target", metavar="COL", help="column of labels")
    parser.add_argument(
        "--test",
        metavar="FILE|SHARE",
        help="test rows: a file, or the share of the rows to hold out, such as 0.2",
    )
    parser.add_argument("--weight", metavar="COL", help="column of row weights")
    for name, about in {
        "id": "an identifier, which is no feature (repeatable)",
        "drop": "a column to ignore (repeatable)",
        "categorical": "a categorical column whose cells look like numbers (repeatable)",
    }.items():
        parser.add_argument(f"--{name}", action="append", default=[], metavar="COL", help=about)
    parser.add_argument(
        "--drop-unlabelled", action="store_true", help="ignore rows without a label"
    )
    parser.add_argument(
        "--seed",
        type=options.seed,
        default=0,
        help="random seed; same seed, same file (default: 0)",
    )
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="stop training after this time"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter of GeometricMixtureClassifier or Recipe: lift=linear (repeatable)",
    )
    parser.add_argument(
        "--preset",
        choices=("readable", "accurate", "fast"),
        help="what the model is for: reading (default), accuracy, or a quick fit without choice",
    )
    parser.add_argument("--paper", action="store_true", help="use the settings of the paper")
    parser.add_argument(
        "--single", action="store_true", help="store numbers as float32, in half the memory"
    )
    parser.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        help="train out of core, or in memory (default: out of core above 30 million cells)",
    )
    parser.add_argument(
        "--scratch", metavar="FOLDER", help="folder of the temporary file of --stream"
    )
    parser.add_argument(
        "--config",
        metavar="TOML",
        help="file of options by long name, and [parameters]; the command line takes precedence",
    )
    options.add_json(parser)
    options.add_read_options(parser)
    # --config replaces defaults but not typed options, so defaults are filled in afterwards.
    defaults = {one.dest: one.default for one in parser._actions if one.dest != "help"}
    for action in parser._actions:
        if action.dest in defaults:
            action.default = argparse.SUPPRESS
    parser.set_defaults(run=lambda arguments: run(merged_options(arguments, defaults)))


def merged_options(arguments: Any, defaults: dict[str, Any]) -> Any:
    """Each option as typed, else from the file of --config, else its default."""
    typed = vars(arguments)
    configured: dict[str, Any] = {}
    if "config" in typed:
        from geomix.command.config import read_config

        configured = read_config(typed["config"], defaults)
    merged = {**defaults, **configured, **typed}
    merged["parameters"] = {
        **configured.get("parameters", {}),
        **options.key_value_pairs(merged["set"], "--set"),
    }
    if merged["preset"] is not None:
        merged["parameters"]["preset"] = merged["preset"]
    for name in ("target", "output"):
        if merged[name] is None:
            raise usage_error(f"the option --{name} is required")
    return SimpleNamespace(**merged)


def run(args: Any) -> int:
    options.need_pyarrow()
    from geomix.command.config import estimator_of
    from geomix.command.fit_in_memory import TestRows, column_roles
    from geomix.command.fit_streaming import check_can_stream
    from geomix.command.summary import FitFacts
    from geomix.tablefile.multiple_files import expand_paths

    if args.output == "-":
        raise usage_error("-o must be a file; a model cannot be written to standard output")
    options.check_two_roles(args.target, args.weight)
    args.data = expand_paths(args.data)
    if "-" in args.data and (args.test == "-" or len(args.data) > 1):
        other = "the test rows" if args.test == "-" else "one of several files"
        raise usage_error(f"standard input cannot be both the training rows and {other}")
    share = _share(args.test)
    options.check_output_is_no_input(
        args.output, *args.data, None if share is not None else args.test
    )
    options.check_writable(args.output, must_be_file=True)
    options.check_no_overwrite(args)
    _check_scratch(args.scratch)
    estimator = estimator_of(args, verbose=is_interactive(args))
    if args.stream:
        check_can_stream(estimator)
    roles = column_roles(args)
    note(args, roles.table.notes)
    fitted = _fit(args, estimator, roles, TestRows.of(args, roles, share))
    fitted.model.save(args.output)
    options.print_result(args, FitFacts.of(estimator, fitted, args))
    return 0


def _fit(args: Any, estimator: Any, roles: Any, test: Any) -> Any:
    """Fit in memory or out of core: as --stream or --no-stream sets, else by the table's size."""
    from geomix.command.fit_in_memory import fit_in_memory, read_training
    from geomix.command.fit_streaming import MOST_CELLS, can_stream, fit_streamed
    from geomix.tablefile.column_types import TooManyCells

    data = None
    if not args.stream:
        may_stream = args.stream is None and can_stream(estimator)
        # ``suppress`` drops the traceback, which would keep the rows read so far in memory.
        with contextlib.suppress(TooManyCells):
            data = read_training(roles, args, MOST_CELLS if may_stream else None)
    if data is not None:
        return fit_in_memory(args, estimator, roles, data, test)
    if not args.stream:
        note(
            args,
            [f"more than {MOST_CELLS} cells: training out of core; --no-stream trains in memory"],
        )
    return fit_streamed(args, estimator, roles, test)


def _check_scratch(folder: Any) -> None:
    """Check the folder before the rows are read."""
    if folder is not None and not os.path.isdir(folder):
        raise NotADirectoryError(20, "Not a directory", os.fsdecode(folder))


def _share(test: Any) -> float | None:
    """--test as a share of the rows; None if it is a file or not set."""
    try:
        share = float(test)
    except (TypeError, ValueError):
        return None
    if os.path.exists(str(test)):
        return None
    if not 0.0 < share < 1.0:
        raise usage_error(f"got --test {test}; expected a file, or a share between 0 and 1")
    return share
