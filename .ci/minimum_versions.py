"""Print the oldest releases that pyproject.toml allows, one constraint per line.

    python .ci/minimum_versions.py > minimum.txt && pip install -c minimum.txt '.[test]'

Only the libraries whose objects users hand to geomix: tools and bridges are pinned by their own
needs.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import tomllib

HELD = ("numpy", "scipy", "scikit-learn", "threadpoolctl", "tqdm", "pandas", "pyarrow")
LOWEST = re.compile(r"([A-Za-z0-9_-]+)(?:\[[^]]*\])?>=([0-9.]+)")


def oldest() -> dict[str, str]:
    """The lower bound of each held library; where it is named twice, the higher one counts."""
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())
    project = project["project"]
    wanted = [
        *project["dependencies"],
        *itertools.chain(*project["optional-dependencies"].values()),
    ]
    bounds: dict[str, str] = {}
    for name, version in (found.groups() for one in wanted if (found := LOWEST.match(one))):
        if name in HELD:
            bounds[name] = max(bounds.get(name, "0"), version, key=_numbers)
    return bounds


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    for name, version in oldest().items():
        print(f"{name}=={version}.*")
