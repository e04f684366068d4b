"""Tests of columns, rows and classes for mistakes in a table. ``table/check.py`` runs them.

A column is a ``Cells``: equal cells share a code, codes of numbers keep the order of the numbers.
Every test is O(n_rows) on these codes. The thresholds were chosen so that 38 public tables raise
no false alarm, and every planted mistake of the tests is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.table.columns import Labels

# Below this many rows a column may be unique, or follow the label, by chance.
FEWEST_ROWS = 50
# Whole numbers named as customer_id is, of which this share of the rows has one of its own.
NEARLY_UNIQUE = 0.9
# Whole numbers that fill this share of their range are counted, not measured.
DENSE = 0.5
# Mean recall of a rule on one column alone. The best honest column of 38 tables reaches 0.93.
NEAR_COPY = 0.99
# In a small table one good column may separate the classes, as a petal does two kinds of iris.
FEWEST_ROWS_FOR_A_COPY = 200
# A category with more levels than this share of the rows follows any label.
LEVELS_TO_FOLLOW = 0.1
# Text is meant as numbers, amounts or dates if this share of its levels reads as such.
MOSTLY = 0.9
# Repeated rows below this share are chance or a slip.
REPEATS_NAMED = 0.01
# A class of fewer rows has none in some of five folds.
FEWEST_OF_A_CLASS = 5
MOST_NAMED = 5
# Whole numbers that may be dates, year, month and day.
FIRST_DATE, LAST_DATE = 19000101, 20991231
MOST_TEXTS = 200  # levels that the patterns are held against

IDENTIFIER_NAME = re.compile(
    r"(^|[^a-zA-Z])(?i:id|uid|guid|uuid|key|nr|serial|index|idx|rowid)([^a-zA-Z]|$)|[a-z](Id|ID)$"
)
DATE = re.compile(
    r"\d{4}[-/.]\d\d?[-/.]\d\d?([ T].*)?|\d\d?([-/.])\d\d?\2(\d{4}|\d\d)( .*)?", re.ASCII
)
NUMBER = r"\d+([.,\s']\d{3})*([.,]\d+)?|[.,]\d+"
AMOUNT = re.compile(
    rf"\(?[+-]?\s*([$€£¥₹]|USD|EUR|GBP|CHF)\s*[+-]?({NUMBER})\s*[kKmM]?\)?"
    rf"|\(?[+-]?({NUMBER})\s*([kKmM]?\s*[$€£¥₹]|USD|EUR|GBP|CHF)\)?"
)
PERCENT = re.compile(rf"[+-]?\s*({NUMBER})\s*%")
GROUPED = re.compile(r"[+-]?\d{1,3}([,'\s]\d{3})+(\.\d+)?")
PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# Text of whole numbers may be codes (soil type 1 to 40, the 2, 3, 4 doors of a car); this is not.
MEASURED = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?|-\d+")
# kind of text: pattern, what it is, remedy
TEXTS = (
    ("percentages", PERCENT, "remove the percent sign and convert it to numbers"),
    ("amounts of money", AMOUNT, "remove the currency sign and convert it to numbers"),
    ("numbers with thousands separators", GROUPED, "remove the separators, convert it to numbers"),
)


@dataclass(frozen=True)
class Finding:
    """One finding. kind : "identifier", "label copy", "number text", "date", "constant",
    "duplicate", "repeated rows" or "few rows";  columns : what it is about (none for rows and
    classes);  sentence : with the remedy."""

    kind: str
    columns: tuple[str, ...]
    sentence: str
    is_serious: bool


@dataclass(frozen=True, eq=False)
class Cells:
    """A column as codes 0 .. n_codes - 1; missing cells share a code of their own, the last.

    numbers : the numbers themselves, or None for a category;  levels : of a category
    """

    codes: IntArray
    n_codes: int
    has_missing: bool
    numbers: FloatArray | None = None
    levels: tuple[Any, ...] = ()

    @property
    def n_distinct(self) -> int:
        """Distinct cells that are not missing."""
        return self.n_codes - self.has_missing

    @cached_property
    def some_texts(self) -> list[str]:
        """At most ``MOST_TEXTS`` levels, evenly spread; none unless all levels are text."""
        if not all(isinstance(level, str) for level in self.levels):
            return []
        step = -(-len(self.levels) // MOST_TEXTS) or 1
        return [level.strip() for level in self.levels[::step]]


def cells_of_numbers(numbers: FloatArray) -> Cells:
    if (few := _codes_of_few(numbers)) is not None:
        return Cells(*few, False, numbers)
    values, codes = np.unique(numbers, return_inverse=True)
    return Cells(codes, len(values), bool(len(values) and np.isnan(values[-1])), numbers)


def _codes_of_few(numbers: FloatArray) -> tuple[IntArray, int] | None:
    """Codes of whole numbers in a short range, and how many there are, without sorting them."""
    if not len(numbers):
        return None
    low, high = float(numbers.min()), float(numbers.max())
    if not (high - low < len(numbers) and bool((numbers == np.rint(numbers)).all())):
        return None
    steps = (numbers - low).astype(np.intp)
    there = np.bincount(steps) > 0
    return (np.cumsum(there) - 1)[steps], int(np.count_nonzero(there))


def cells_of_labels(labels: Labels) -> Cells:
    """The levels that occur, renumbered in their order."""
    there = np.bincount(labels.codes + 1, minlength=len(labels.levels) + 1) > 0
    code_of = np.cumsum(there[1:]) - 1
    n_levels, has_missing = int(there[1:].sum()), bool(there[0])
    codes = np.append(code_of, n_levels)[labels.codes]
    levels = tuple(level for level, seen in zip(labels.levels, there[1:], strict=True) if seen)
    return Cells(codes, n_levels + has_missing, has_missing, None, levels)


# --- one column ---


def in_one_column(
    name: str, cells: Cells, y: IntArray, n_classes: int, sample_share: float
) -> list[Finding]:
    """The first of the tests that finds something."""
    tests: tuple[Callable[[], Finding | None], ...] = (
        lambda: _text_dates(name, cells),
        lambda: _number_text(name, cells),
        lambda: _number_dates(name, cells),
        lambda: _identifier(name, cells, sample_share),
        lambda: _label_copy(name, cells, y, n_classes),
    )
    for test in tests:
        if (finding := test()) is not None:
            return [finding]
    return []


def typed_dates(name: str) -> Finding:
    """The finding of a column whose type is a date or a time, which ``fit`` refuses."""
    return _date(name, "dates or times, which fit refuses")


def _date(name: str, what: str) -> Finding:
    remedy = "drop it, or convert it to numbers (a year, an age in days)."
    return Finding("date", (name,), f"Column {name!r} holds {what}; {remedy}", True)


def _text_dates(name: str, cells: Cells) -> Finding | None:
    if _share_of_texts(cells, DATE) < MOSTLY:
        return None
    return _date(name, f"dates as text, such as {cells.levels[0]!r}, each a category of its own")


def _number_text(name: str, cells: Cells) -> Finding | None:
    for what, pattern, remedy in TEXTS:
        # 5, 10% and $1,000 may stand in one column; one mark is enough to know its meaning.
        if _share_of_texts(cells, pattern, PLAIN_NUMBER) >= MOSTLY and _share_of_texts(
            cells, pattern
        ):
            return _numbers_as_text(name, what, cells, remedy)
    if _share_of_texts(cells, PLAIN_NUMBER) >= MOSTLY and _share_of_texts(cells, MEASURED):
        return _numbers_as_text(name, "numbers", cells, "convert it to numbers")
    return None


def _numbers_as_text(name: str, what: str, cells: Cells, remedy: str) -> Finding:
    sentence = (
        f"Column {name!r} holds {what} as text, such as {_example(cells)!r}, and each is a "
        f"category of its own; {remedy}."
    )
    return Finding("number text", (name,), sentence, True)


def _example(cells: Cells) -> Any:
    marked = (text for text in cells.levels if not PLAIN_NUMBER.fullmatch(str(text).strip()))
    return next(marked, cells.levels[0])


def _share_of_texts(cells: Cells, *patterns: re.Pattern[str]) -> float:
    """Share of the levels that match a pattern; 0 for numbers and for categories of numbers."""
    texts = cells.some_texts
    matched = (any(one.fullmatch(text) for one in patterns) for text in texts)
    return sum(matched) / len(texts) if texts else 0.0


def _number_dates(name: str, cells: Cells) -> Finding | None:
    """Whole numbers such as 20240131."""
    numbers = _whole(cells)
    if numbers is None or cells.n_distinct < 3:
        return None
    if numbers.min() < FIRST_DATE or numbers.max() > LAST_DATE:
        return None
    month, day = numbers // 100 % 100, numbers % 100
    fits = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    if not fits.all():
        return None
    return _date(name, f"dates as whole numbers, such as {numbers[0]:.0f}")


def _whole(cells: Cells) -> FloatArray | None:
    """The numbers that are not missing, if all of them are whole; else None."""
    if cells.numbers is None:
        return None
    numbers = cells.numbers[~np.isnan(cells.numbers)] if cells.has_missing else cells.numbers
    return numbers if len(numbers) and bool((numbers == np.rint(numbers)).all()) else None


def _identifier(name: str, cells: Cells, sample_share: float) -> Finding | None:
    n_rows = len(cells.codes)
    if n_rows < FEWEST_ROWS or cells.n_distinct < NEARLY_UNIQUE * n_rows:
        return None
    if cells.numbers is None:
        what = "text" if isinstance(cells.levels[0], str) else "label"
        return _identified(name, cells, f"another {what}")
    numbers = _whole(cells)
    if numbers is None:
        return None
    is_unique = cells.n_distinct == len(numbers)
    named = IDENTIFIER_NAME.search(name) is not None
    counted = is_unique and (_is_dense(numbers, sample_share) or _is_sorted(numbers))
    return _identified(name, cells, "another whole number") if named or counted else None


def _identified(name: str, cells: Cells, what: str) -> Finding:
    where = "every row" if cells.n_distinct == len(cells.codes) else "nearly every row"
    sentence = (
        f"Column {name!r} has {what} in {where}, as an identifier has; drop it (--id on the "
        "command line)."
    )
    return Finding("identifier", (name,), sentence, True)


def _is_dense(numbers: FloatArray, sample_share: float) -> bool:
    spread = numbers.max() - numbers.min() + 1.0
    return bool(len(numbers) >= DENSE * sample_share * spread)


def _is_sorted(numbers: FloatArray) -> bool:
    steps = np.diff(numbers)
    return bool((steps > 0).all() or (steps < 0).all())


def _label_copy(name: str, cells: Cells, y: IntArray, n_classes: int) -> Finding | None:
    n_rows = len(y)
    if n_rows < FEWEST_ROWS_FOR_A_COPY or n_classes < 2:
        return None
    by_level = 0.0
    if cells.n_codes <= LEVELS_TO_FOLLOW * n_rows and cells.n_codes * n_classes <= 10 * n_rows:
        by_level = _recall_by_level(cells, y, n_classes)
    in_order = 0.0 if cells.numbers is None else _recall_in_order(cells, y, n_classes)
    recall = max(by_level, in_order)
    if recall < NEAR_COPY:
        return None
    sentence = (
        f"Column {name!r} alone predicts the label with a mean recall of {recall:.1%}, as a copy "
        "of the label would; drop it if it is only known after the label."
    )
    return Finding("label copy", (name,), sentence, True)


def _recall_by_level(cells: Cells, y: IntArray, n_classes: int) -> float:
    """Mean recall over the classes if every level predicts the class that it is most part of."""
    counts = np.bincount(cells.codes * n_classes + y, minlength=cells.n_codes * n_classes)
    there = np.bincount(y, minlength=n_classes)
    share = counts.reshape(cells.n_codes, n_classes) / np.maximum(there, 1)
    return float(share.max(axis=1).sum() / np.count_nonzero(there))


def _recall_in_order(cells: Cells, y: IntArray, n_classes: int) -> float:
    """Mean recall if the sorted cells are cut into one interval for each class.

    Classes are ordered by their mean rank, and each interval is as long as its class has rows.
    Equal cells have one rank, the middle of theirs, so that the order of the rows plays no part.
    """
    size = np.bincount(cells.codes, minlength=cells.n_codes)
    middle = np.cumsum(size) - (size + 1) / 2.0
    rank = middle[cells.codes]
    there = np.bincount(y, minlength=n_classes)
    rows = np.maximum(there, 1)
    order = np.argsort(np.bincount(y, rank, n_classes) / rows, kind="stable")
    predicted = np.repeat(order, there[order])[np.rint(rank).astype(np.intp)]
    hits = np.bincount(y[predicted == y], minlength=n_classes)
    return float((hits / rows).sum() / np.count_nonzero(there))


# --- several columns, rows, classes ---


def about_constants(columns: Iterable[tuple[str, Cells]]) -> list[Finding]:
    """Columns with one value, or with none."""
    names = [name for name, cells in columns if cells.n_codes < 2]
    if not names:
        return []
    what = "Column" if len(names) == 1 else "Columns"
    rest = "is constant; drop it." if len(names) == 1 else "are constant; drop them."
    return [Finding("constant", tuple(names), f"{what} {_named(names)} {rest}", False)]


def about_copies(columns: Iterable[tuple[str, Cells]]) -> list[Finding]:
    """Columns that are the same but for a change of scale or of names.

    Numbers are the same if they have the same order (or the reverse one); categories if their
    levels correspond one to one.
    """
    names_of: dict[bytes, list[str]] = {}
    for name, cells in columns:
        if cells.n_codes > 1:
            names_of.setdefault(_pattern(cells), []).append(name)
    groups = [names for names in names_of.values() if len(names) > 1]
    found = [_copies(names) for names in groups[:MOST_NAMED]]
    if more := [name for names in groups[MOST_NAMED:] for name in names[1:]]:
        sentence = f"{len(more)} more columns repeat another: {_named(more)}."
        found.append(Finding("duplicate", tuple(more), sentence, False))
    return found


def _copies(names: list[str]) -> Finding:
    first, *others = names
    many = len(others) > 1
    sentence = (
        f"{'Columns' if many else 'Column'} {_named(others)} {'repeat' if many else 'repeats'} "
        f"{first!r} up to scale or names, so that its effect is split among them; drop "
        f"{'them' if many else 'one of the two'}."
    )
    return Finding("duplicate", tuple(names), sentence, False)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + more


def _pattern(cells: Cells) -> bytes:
    """The same bytes for columns with the same information, and for no others."""
    codes = cells.codes
    if cells.numbers is None or cells.n_codes == 2:
        return _by_first_row(codes)
    last = cells.n_distinct - 1
    mirrored = np.where(codes > last, codes, last - codes)
    low, high = codes.astype(np.int32).tobytes(), mirrored.astype(np.int32).tobytes()
    return min(low, high)


def _by_first_row(codes: IntArray) -> bytes:
    """Codes renumbered in the order in which they first occur."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse].tobytes()


def about_rows(columns: list[Cells], y: IntArray) -> list[Finding]:
    """Rows that are given more than once, with the same label or with another."""
    n_rows = len(y)
    if n_rows < FEWEST_ROWS or not columns:
        return []
    keys = _row_keys(columns)
    distinct = len(np.unique(keys))
    with_label = len(np.unique(_mixed(keys, y)))
    repeated = n_rows - with_label
    found = []
    if repeated >= REPEATS_NAMED * n_rows:
        found.append(
            f"{repeated} of {n_rows} rows ({repeated / n_rows:.1%}) repeat another row, label "
            "included; if they are one case entered twice, drop them before you split off test "
            "rows."
        )
    if with_label - distinct >= REPEATS_NAMED * n_rows:
        found.append(
            f"{with_label - distinct} of {n_rows} rows have the cells of another row and a "
            "different label; no model can be right about both."
        )
    return [Finding("repeated rows", (), sentence, False) for sentence in found]


def _row_keys(columns: list[Cells]) -> Any:
    """A 64-bit hash of the codes of each row."""
    keys = np.zeros(len(columns[0].codes), dtype=np.uint64)
    for cells in columns:
        keys = _mixed(keys, cells.codes)
    return keys


def _mixed(keys: Any, codes: IntArray) -> Any:
    with np.errstate(over="ignore"):
        z = (keys ^ codes.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        return z ^ (z >> np.uint64(29))


def about_classes(rows: dict[str, int]) -> list[Finding]:
    """Classes of a few rows, in a table that has more than a few for each."""
    if sum(rows.values()) < max(FEWEST_ROWS, 2 * len(rows)):
        return []
    few = {label: n for label, n in rows.items() if 0 < n < FEWEST_OF_A_CLASS}
    if not few:
        return []
    shown = ", ".join(f"{label!r} ({n})" for label, n in list(few.items())[:MOST_NAMED])
    more = f" and {len(few) - MOST_NAMED} more" if len(few) > MOST_NAMED else ""
    what = "Class" if len(few) == 1 else "Classes"
    has = "has" if len(few) == 1 else "have"
    sentence = (
        f"{what} {shown}{more} {has} fewer than {FEWEST_OF_A_CLASS} rows, too few to learn or to "
        "validate; collect more, or merge with another class."
    )
    return [Finding("few rows", (), sentence, True)]
