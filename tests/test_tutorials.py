"""The tutorials and the examples run as they are printed."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("[0-9]*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
# What a script needs beyond the packages that the tests install.
NEEDS = {"from_ebm": "interpret", "from_lightgbm": "lightgbm", "torch": "torch"}


def run(script: Path) -> str:
    """Output of a script in a process of its own; a script without its package is skipped."""
    for part, package in NEEDS.items():
        if part in script.name and importlib.util.find_spec(package) is None:
            pytest.skip(f"{script.name} needs {package}")
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=script.parent,
        env={**os.environ, "MPLBACKEND": "agg", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_from_top_to_bottom(script):
    assert run(script)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_prints(script, capsys):
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("scripts", [TUTORIALS, EXAMPLES], ids=["tutorials", "examples"])
def test_scripts_are_numbered_without_gaps(scripts):
    assert [int(path.name[:2]) for path in scripts] == list(range(1, len(scripts) + 1))
