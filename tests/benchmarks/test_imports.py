"""What benchmarks and examples import from geomix exists. Most of them are not run by a test."""

import ast
import importlib
from importlib.util import find_spec

import pytest
from places import ROOT

SCRIPTS = sorted(
    path for folder in ("benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")
)


def imported(path):
    """(module, name) of every import from geomix."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "geomix":
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_imports_what_exists(path):
    for module, name in imported(path):
        if module in ("geomix.torch", "geomix.dask"):  # extras
            continue
        known = importlib.import_module(module)
        assert hasattr(known, name) or find_spec(f"{module}.{name}"), f"{module}.{name}"
