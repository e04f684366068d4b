"""Options that several commands share, and their texts as values."""

from __future__ import annotations

import argparse
import os
from typing import Any

from geomix.command.exit_codes import USAGE, Failure, usage

SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def new_parser(commands: Any, name: str, about: str, examples: str) -> argparse.ArgumentParser:
    """The parser of one command, with what all of them have."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    general = parser.add_argument_group("general")
    general.add_argument("--quiet", action="store_true", help="no notes, no progress")
    general.add_argument("--strict", action="store_true", help="a warning is an error (exit 6)")
    general.add_argument("--debug", action="store_true", help="show where an error came from")
    return parser


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .geomix file")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How files of rows are read."""
    group = parser.add_argument_group(
        "reading", "CSV, TSV, Parquet, Feather; .gz .zst .bz2 .xz; '-' is standard input"
    )
    group.add_argument("--delimiter", metavar="CHAR", help="between fields (found if not given)")
    group.add_argument("--no-header", action="store_true", help="columns are called x0, x1, ...")
    group.add_argument("--encoding", default="utf-8", metavar="NAME", help="default: utf-8")
    group.add_argument("--decimal", default=".", metavar="CHAR", help="decimal mark")
    group.add_argument("--thousands", metavar="CHAR", help="mark between thousands")
    group.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="TEXT",
        help="a cell that means missing, besides an empty one (repeatable)",
    )
    group.add_argument(
        "--max-unfolded",
        default="8g",
        metavar="BYTES",
        help="most bytes of compressed content (default: 8g)",
    )


def reading(arguments: Any) -> Any:
    """The options of reading as a value."""
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
        size(arguments.max_unfolded, "--max-unfolded"),
    )


def need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise Failure(
            USAGE, "reading tables needs pyarrow, which is not installed: pip install 'geomix[cli]'"
        ) from error


def size(text: str, option: str) -> int:
    """Bytes of a text such as 500m or 8g."""
    digits = text.rstrip("kmgtbKMGTB")
    suffix = text[len(digits) :].lower().rstrip("b")
    if not digits.isascii() or not digits.isdigit() or suffix not in SUFFIXES:
        raise usage(f"got {option} {text}; expected a number of bytes such as 500m or 8g")
    return int(digits) * SUFFIXES[suffix]


def pairs(texts: list[str], option: str) -> dict[str, str]:
    """KEY=VALUE texts as a dict."""
    found = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key:
            raise usage(f"got {option} {text}; expected KEY=VALUE")
        found[key] = value
    return found


def refuse_same_file(output: Any, *inputs: Any) -> None:
    """An output that is also an input would be gone before it is read."""
    for one in inputs:
        if one in (None, "-") or output in (None, "-"):
            continue
        same = os.path.realpath(one) == os.path.realpath(output)
        if same or (
            os.path.exists(output) and os.path.exists(one) and os.path.samefile(one, output)
        ):
            if os.path.exists(output) and not os.path.isfile(output):
                continue  # a device, a pipe
            raise usage(f"input and output are the same file: {os.fsdecode(output)}")


def check_folder(output: Any) -> None:
    """Fail before the work rather than after it, if nothing could be written there."""
    if output == "-":
        return
    if os.path.isdir(output):
        raise IsADirectoryError(21, "Is a directory", os.fsdecode(output))
    folder = os.path.dirname(os.path.realpath(output))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, "No such folder", folder)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "Permission denied", folder)


def loaded(path: Any) -> Any:
    from geomix.modelfile.saving import load

    return load(path)


def print_json(facts: Any) -> None:
    import json

    from geomix.table.printing import plain

    print(json.dumps(plain(facts), indent=2, ensure_ascii=False, allow_nan=False))


def print_facts(arguments: Any, facts: Any) -> None:
    """Something that knows how to be JSON and how to be text."""
    if arguments.json:
        print_json(facts.to_dict())
    else:
        print(facts)


def row_number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}; expected a row number from 1")
    return number
