"""``python benchmarks/paper``: see ``run.py``."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)  # a folder that is run is on it itself

from paper.run import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
