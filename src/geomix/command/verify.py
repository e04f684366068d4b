"""``geomix verify``: check that a model file is valid. Exit code 4 if it is not."""

from __future__ import annotations

from typing import Any

from geomix.command import options
from geomix.command.exit_codes import usage_error

EXAMPLES = """\
  geomix verify m.geomix
  geomix verify m.geomix --sha256 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
"""
HEX_DIGITS = 64


def add(commands: Any) -> None:
    parser = options.new_parser(commands, "verify", "check that a model file is valid", EXAMPLES)
    options.add_model(parser)
    parser.add_argument(
        "--sha256", metavar="HEX", help="expected hash of the file, as sha256sum prints it"
    )
    parser.set_defaults(run=run)


def run(args: Any) -> int:
    from geomix.modelfile.saving import load, verify

    if args.sha256 is None:
        load(args.model)
        return 0
    given = args.sha256.strip().lower()
    if len(given) != HEX_DIGITS or set(given) - set("0123456789abcdef"):
        raise usage_error(f"got --sha256 {args.sha256}; expected {HEX_DIGITS} hexadecimal digits")
    verify(args.model, given)
    return 0
