"""Options that several commands share, and checks of their values."""

from __future__ import annotations

import argparse
import math
import os
from typing import Any

from geomix.command.exit_codes import USAGE, CommandError, usage_error

LARGEST_SEED = 2**32 - 1  # NumPy takes no larger one
SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def new_parser(commands: Any, name: str, about: str, examples: str) -> argparse.ArgumentParser:
    """The parser of one command, with the options that every command has."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    general = parser.add_argument_group("general")
    general.add_argument("--quiet", action="store_true", help="print no notes and no progress")
    general.add_argument("--strict", action="store_true", help="treat warnings as errors (exit 6)")
    general.add_argument("--debug", action="store_true", help="print the traceback of an error")
    return parser


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .geomix file")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to read files of rows."""
    group = parser.add_argument_group(
        "reading", "CSV, TSV, Parquet, Feather; .gz .zst .bz2 .xz; '-' is standard input"
    )
    group.add_argument("--delimiter", metavar="CHAR", help="field delimiter (default: detected)")
    group.add_argument(
        "--no-header",
        action="store_true",
        help="the file has no header; columns are named x0, x1, ...",
    )
    group.add_argument(
        "--encoding", default="utf-8", metavar="NAME", help="text encoding (default: utf-8)"
    )
    group.add_argument(
        "--decimal", default=".", metavar="CHAR", help="decimal separator (default: .)"
    )
    group.add_argument(
        "--thousands", metavar="CHAR", help="thousands separator, between groups of three digits"
    )
    group.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="TEXT",
        help="a cell value that means missing, besides empty cells (repeatable)",
    )
    group.add_argument(
        "--max-decompressed",
        default="8g",
        metavar="BYTES",
        help="limit on the decompressed size (default: 8g)",
    )


def read_options(arguments: Any) -> Any:
    """``ReadOptions`` for these arguments."""
    need_pyarrow()
    from geomix.tablefile import ReadOptions

    delimiter = {"\\t": "\t", "tab": "\t"}.get(arguments.delimiter, arguments.delimiter)
    return ReadOptions(
        delimiter,
        not arguments.no_header,
        arguments.encoding,
        arguments.decimal,
        arguments.thousands,
        tuple(arguments.missing),
        size(arguments.max_decompressed, "--max-decompressed"),
    )


def need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise CommandError(
            USAGE, "reading tables needs pyarrow, which is not installed: pip install 'geomix[cli]'"
        ) from error


def size(text: str, option: str) -> int:
    """The number of bytes in a string such as 500m or 8g."""
    digits = text.rstrip("kmgtbKMGTB")
    suffix = text[len(digits) :].lower().rstrip("b")
    if not digits.isascii() or not digits.isdigit() or suffix not in SUFFIXES:
        raise usage_error(f"got {option} {text}; expected a number of bytes such as 500m or 8g")
    return int(digits) * SUFFIXES[suffix]


def key_value_pairs(texts: list[str], option: str) -> dict[str, str]:
    """KEY=VALUE strings as a dict."""
    found = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key:
            raise usage_error(f"got {option} {text}; expected KEY=VALUE")
        found[key] = value
    return found


def check_two_roles(target: Any, weight: Any) -> None:
    """Raise if one column is both the labels and the weights."""
    if weight and weight == target:
        raise usage_error(
            f"got --target {target} and --weight {weight}, which are one column; expected two"
        )


def check_one_standard_input(first: Any, second: Any, what: str) -> None:
    """Raise if standard input is named twice; ``what`` : the two tables."""
    if first == second == "-":
        raise usage_error(f"standard input cannot be both {what}")


def check_output_is_no_input(output: Any, *inputs: Any) -> None:
    """Raise if the output is also an input, which would be overwritten."""
    for one in inputs:
        if one in (None, "-") or output in (None, "-"):
            continue
        same = os.path.realpath(one) == os.path.realpath(output)
        if same or (
            os.path.exists(output) and os.path.exists(one) and os.path.samefile(one, output)
        ):
            if os.path.exists(output) and not os.path.isfile(output):
                continue  # a device, a pipe
            raise usage_error(f"input and output are the same file: {os.fsdecode(output)}")


def check_writable(output: Any, *, must_be_file: bool = False) -> None:
    """Raise before any work is done if the output cannot be written.

    must_be_file : whether the command can only write files, and no devices and pipes
    """
    if output == "-":
        return
    if os.path.isdir(output):
        raise IsADirectoryError(21, "Is a directory", os.fsdecode(output))
    if os.path.exists(output) and not os.path.isfile(output):
        if must_be_file:
            raise OSError(22, "Not a regular file", os.fsdecode(output))
        if not os.access(output, os.W_OK):
            raise PermissionError(13, "Permission denied", os.fsdecode(output))
        return  # written directly, which needs no folder
    folder = os.path.dirname(os.path.realpath(output))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "No such directory", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "Permission denied", folder)


def check_no_overwrite(args: Any) -> None:
    """Raise if the output exists and --force is not set."""
    if args.output != "-" and os.path.isfile(args.output) and not args.force:
        raise usage_error(f"{os.fsdecode(args.output)} exists; use --force to overwrite it")


def load_model(path: Any) -> Any:
    from geomix.modelfile.saving import load

    return load(path)


def print_json(facts: Any) -> None:
    import json

    from geomix.table.printing import plain

    print(json.dumps(plain(facts), indent=2, ensure_ascii=False, allow_nan=False))


def print_result(arguments: Any, facts: Any, basis: str | None = None) -> None:
    """Print a result as JSON or as text.

    basis : which rows the figures are from, where they are not from all rows
    """
    if arguments.json:
        print_json(facts.to_dict() | ({} if basis is None else {"basis": basis}))
    else:
        print(facts if basis is None else f"{facts}\n({basis})")


def row_number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a row number from 1")
    return number


def seed(text: str) -> int:
    """A random seed as NumPy takes it."""
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= LARGEST_SEED:
        raise argparse.ArgumentTypeError(
            f"got {text!r}; expected a whole number from 0 to {LARGEST_SEED}"
        )
    return number


def probability(text: str) -> float:
    """A number between 0 and 1, both excluded."""
    number = _as_float(text)
    if not 0.0 < number < 1.0:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a number between 0 and 1")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    number = _as_float(text)
    if not 0.0 <= number <= 1.0:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a number from 0 to 1")
    return number


def _as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
