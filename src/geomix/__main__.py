"""``python -m geomix`` is the command ``geomix``."""

import sys

from geomix.cli import main

if __name__ == "__main__":
    sys.exit(main())
