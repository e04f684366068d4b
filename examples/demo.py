"""A first look at geomix, from a clone: the same as the command ``geomix demo``.

python examples/demo.py --output demo
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from geomix.demonstration import run, writable_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder for the pictures")
    parser.add_argument("--seed", type=int, default=0, help="of the splits and of the training")
    arguments = parser.parse_args()
    try:
        folder = writable_folder(arguments.output)
    except OSError as error:
        sys.exit(
            f"Cannot make the folder {arguments.output}: {error.strerror}. Choose another --output."
        )
    run(folder, arguments.seed)


if __name__ == "__main__":
    main()
