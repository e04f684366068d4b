"""``geomix fit``: from a file of rows to a model file."""

from __future__ import annotations

import argparse
import contextlib
import os
from types import SimpleNamespace
from typing import Any

from geomix.command import options
from geomix.command.exit_codes import usage
from geomix.command.messages import is_watched, note

EXAMPLES = """\
  geomix fit train.csv --target y -o m.geomix --test 0.2
  geomix fit train.parquet --target y -o m.geomix --test test.parquet --id customer --drop notes
  geomix fit - --target y -o m.geomix --set lift=spline --set n_planes=4 < train.csv
  geomix fit train.csv -o m.geomix --config recipe.toml
  geomix fit 'parts/*.csv.gz' --target y -o m.geomix --stream --test 0.1
"""


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "fit", "train a model on a file of rows", EXAMPLES)
    parser.add_argument(
        "data",
        nargs="+",
        metavar="FILE",
        help="rows with labels: a file, several, or a pattern; '-' is standard input",
    )
    parser.add_argument("-o", "--output", metavar="MODEL", help="the .geomix file to write")
    parser.add_argument("--target", metavar="COL", help="the column with the labels")
    parser.add_argument(
        "--test",
        metavar="FILE|SHARE",
        help="rows to judge the model by: a file, or a share that is not learnt from",
    )
    parser.add_argument("--weight", metavar="COL", help="column of row weights")
    for name, about in {
        "id": "an identifier: not learnt from (repeatable)",
        "drop": "a column to leave out (repeatable)",
        "categorical": "a column of categories, such as codes of digits (repeatable)",
    }.items():
        parser.add_argument(f"--{name}", action="append", default=[], metavar="COL", help=about)
    parser.add_argument(
        "--drop-unlabelled", action="store_true", help="leave out rows without a label"
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same file (default: 0)")
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="most time for training"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter of GeometricMixtureClassifier or Recipe: lift=linear (repeatable)",
    )
    parser.add_argument("--paper", action="store_true", help="the paper's recipe instead of ours")
    parser.add_argument("--single", action="store_true", help="numbers in float32: half the memory")
    parser.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        help="never hold all rows in memory, or always do (default: from 30 million cells on)",
    )
    parser.add_argument(
        "--scratch", metavar="FOLDER", help="for the unnamed scratch file of a streamed fit"
    )
    parser.add_argument(
        "--config",
        metavar="TOML",
        help="options by their long names, and [parameters]; the command line wins",
    )
    options.add_json(parser)
    options.add_reading(parser)
    # What was not typed must be told from what was, for --config: defaults are filled in later.
    defaults = {one.dest: one.default for one in parser._actions if one.dest != "help"}
    for action in parser._actions:
        if action.dest in defaults:
            action.default = argparse.SUPPRESS
    parser.set_defaults(run=lambda arguments: run(settings(arguments, defaults)))


def settings(arguments: Any, defaults: dict[str, Any]) -> Any:
    """The options: as typed, else as in the file of --config, else as usual."""
    typed = vars(arguments)
    configured: dict[str, Any] = {}
    if "config" in typed:
        from geomix.command.config import read_config

        configured = read_config(typed["config"], defaults)
    merged = {**defaults, **configured, **typed}
    merged["parameters"] = {
        **configured.get("parameters", {}),
        **options.pairs(merged["set"], "--set"),
    }
    for name in ("target", "output"):
        if merged[name] is None:
            raise usage(f"the option --{name} is needed")
    return SimpleNamespace(**merged)


def run(a: Any) -> int:
    options.need_pyarrow()
    from geomix.command.config import estimator_of
    from geomix.command.fit_in_memory import roles_of
    from geomix.command.fit_streaming import check_can_stream
    from geomix.command.summary import FitFacts
    from geomix.tablefile.multiple_files import matched

    if a.output == "-":
        raise usage("a model is written to a file, not to standard output")
    a.data = matched(a.data)
    if "-" in a.data and (a.test == "-" or len(a.data) > 1):
        other = "those of --test" if a.test == "-" else "one of several files"
        raise usage(f"standard input cannot be both the rows and {other}")
    share = _share(a.test)
    options.refuse_same_file(a.output, *a.data, None if share is not None else a.test)
    options.check_folder(a.output)
    _check_scratch(a.scratch)
    estimator = estimator_of(a, verbose=is_watched(a))
    if a.stream:
        check_can_stream(estimator)
    roles = roles_of(a)
    note(a, roles.table.notes)
    fitted = _fitted(a, estimator, roles, share)
    fitted.model.save(a.output)
    options.print_facts(a, FitFacts.of(estimator, fitted, a))
    return 0


def _fitted(a: Any, estimator: Any, roles: Any, share: float | None) -> Any:
    """The model, of rows in memory or of streamed ones: as told, else by how many there are."""
    from geomix.command.fit_in_memory import fit_in_memory, read_training
    from geomix.command.fit_streaming import MOST_CELLS, can_stream, fit_streamed
    from geomix.tablefile.column_types import TooManyCells

    data = None
    if not a.stream:
        may_stream = a.stream is None and can_stream(estimator)
        # Nothing of the rows may outlive the error: they would be in memory all along.
        with contextlib.suppress(TooManyCells):
            data = read_training(roles, a, MOST_CELLS if may_stream else None)
    if data is not None:
        return fit_in_memory(a, estimator, roles, data, share)
    if not a.stream:
        note(a, [f"more than {MOST_CELLS} cells: streamed; --no-stream holds them in memory"])
    return fit_streamed(a, estimator, roles, share)


def _check_scratch(folder: Any) -> None:
    """Fail before the rows are read rather than after it."""
    if folder is not None and not os.path.isdir(folder):
        raise NotADirectoryError(20, "Not a folder", os.fsdecode(folder))


def _share(test: Any) -> float | None:
    """--test as a share of the rows, or None where it is a file or nothing."""
    try:
        share = float(test)
    except (TypeError, ValueError):
        return None
    if os.path.exists(str(test)):
        return None
    if not 0.0 < share < 1.0:
        raise usage(f"got --test {test}; expected a file, or a share between 0 and 1")
    return share
