"""The package is built as ``docs/design/architecture.md`` says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "geomix"
CORE = ("pooling", "planes", "lift", "objective", "kernel", "model")


def imported(path):
    """Modules of the package that a file imports, wherever in it, by their first name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "geomix":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("geomix."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {name[1] for name in names if name[0] == "geomix" and len(name) > 1}
    return found


def test_what_the_map_names_is_there():
    text = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("| step |") : text.index("Imports point down")]
    named = re.findall(r"`(\w+\.py)`", table)
    there = {path.name for path in PACKAGE.rglob("*.py")}
    assert len(named) > 80
    assert set(named) <= there


@pytest.mark.parametrize(("module", "door"), [("_native", "native.py"), ("native", "kernel.py")])
def test_native_code_has_one_door(module, door):
    who = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if module in imported(path)}
    assert who == {Path(door)}


def test_the_core_never_imports_scikit_learn():
    names = ", ".join(f"geomix.{name}" for name in CORE)
    told = "print([name for name in sys.modules if name.split('.')[0] == 'sklearn'])"
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys, {names}; {told}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout == "[]\n"
