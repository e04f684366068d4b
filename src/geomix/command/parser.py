"""The argument parser: every command and its options."""

from __future__ import annotations

import argparse

from geomix import __version__
from geomix.command import (
    bench,
    completion,
    counterfactual,
    demo,
    drift,
    evaluate,
    explain,
    export,
    fit,
    info,
    predict,
    report,
    rules,
    verify,
)

COMMANDS = (
    fit,
    predict,
    evaluate,
    explain,
    counterfactual,
    rules,
    report,
    drift,
    export,
    info,
    verify,
    bench,
    demo,
    completion,
)

EXAMPLES = """\
examples:
  geomix fit train.csv --target y -o m.geomix --test 0.2
  geomix predict m.geomix new.csv -o predictions.csv --id customer --proba
  geomix explain m.geomix new.csv --row 1
  geomix export m.geomix --to onnx -o m.onnx

exit codes: 0 success, 1 internal error, or a negative result (drift found, no counterfactual),
2 usage, 3 bad data, 4 bad model file, 5 system (disk, permission), 6 warning with --strict,
130 Ctrl-C, 143 SIGTERM
"""


def parser() -> argparse.ArgumentParser:
    """The parser of ``geomix``."""
    whole = argparse.ArgumentParser(
        prog="geomix",
        description="Train and use geometric mixture classifiers: a few readable planes per class.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"geomix {__version__}")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add(commands)
    return whole
