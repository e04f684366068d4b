"""docs/promises.md: every test that holds a promise exists, and every case has a number."""

import ast
import re

import pytest
from places import ROOT, TESTS

PAGE = ROOT / "docs" / "promises.md"
NAMED = re.compile(r"`(test_\w+)::(test_\w+)`")
CASE = re.compile(r"^\| ([A-HN])(\d+) \|", re.MULTILINE)


def functions_of(path):
    nodes = ast.walk(ast.parse(path.read_text()))
    return {one.name for one in nodes if isinstance(one, ast.FunctionDef)}


def test_every_test_named_on_the_page_exists():
    modules = {path.stem: functions_of(path) for path in TESTS.rglob("test_*.py")}
    named = NAMED.findall(PAGE.read_text())
    assert len(named) > 200
    assert [f"{m}::{t}" for m, t in named if t not in modules.get(m, ())] == []


@pytest.mark.parametrize("letter", "ABCDEFGHN")
def test_cases_are_numbered_one_by_one(letter):
    numbers = [int(n) for one, n in CASE.findall(PAGE.read_text()) if one == letter]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_case_names_a_test_or_is_open():
    rows = [line for line in PAGE.read_text().splitlines() if CASE.match(line)]
    assert [row for row in rows if not NAMED.search(row) and "*open*" not in row] == []
