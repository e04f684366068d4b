"""The house style of docstrings as reStructuredText, before numpydoc reads it.

    model_                          an attribute, where reStructuredText would see a link
    name : text;  other : text      lists of names outside of numpydoc sections, as definitions
    indented paragraphs             formulas and small tables, shown as they are

From the first numpydoc section ("Parameters" and a line of dashes), numpydoc takes over. There an
entry whose text goes on in the next line is a description, not a type.
"""

from __future__ import annotations

import re
from typing import Any

FITTED = re.compile(r"(?<![`\w.])([A-Za-z]\w*_)(?![`\w])")
ENTRY = re.compile(r"^(\w[\w, *]*?) : (.+)$")
STAR_OF_A_PATTERN = re.compile(r"(?<=/)\*(?=\.)")
# Methods that scikit-learn writes; their texts refer to pages of its own site.
NOT_OURS = {
    "set_fit_request",
    "set_partial_fit_request",
    "set_score_request",
    "get_metadata_routing",
}


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    start = first_section(lines)
    head = [line for block in paragraphs(lines[:start]) for line in (*rewritten(block), "")]
    lines[:] = [in_text(line) for line in head + described(lines[start:])]


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    return True if name in NOT_OURS else None


def first_section(lines: list[str]) -> int:
    dashes = [
        i for i, line in enumerate(lines) if i and line.strip() and set(line.strip()) == {"-"}
    ]
    return dashes[0] - 1 if dashes else len(lines)


def paragraphs(lines: list[str]) -> list[list[str]]:
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def rewritten(block: list[str]) -> list[str]:
    if block[0].startswith("    "):
        return [".. code-block:: text", "", *("   " + line for line in block)]
    if ENTRY.match(block[0]) and all(line[0] == " " or ENTRY.match(line) for line in block):
        return definitions(block)
    return block


def definitions(block: list[str]) -> list[str]:
    entries: list[str] = []
    for line in block:
        if line[0] == " ":
            entries[-1] += " " + line.strip()
        else:
            entries += line.split(";  ")
    found = [ENTRY.match(entry) for entry in " ;; ".join(entries).split(" ;; ")]
    out: list[str] = []
    for entry, match in zip(entries, found, strict=True):
        if match is None:
            out[-1] += "; " + entry
        else:
            out += [f"``{match[1]}``", f"   {match[2]}"]
    return out


def described(lines: list[str]) -> list[str]:
    """Entries of numpydoc sections: ``name : a sentence`` becomes a name and its description."""
    out: list[str] = []
    for i, line in enumerate(lines):
        match = ENTRY.match(line)
        goes_on = i + 1 < len(lines) and re.match(r" +[a-z`(]", lines[i + 1]) is not None
        if match is None or not (goes_on or ";  " in line):
            out.append(line)
            continue
        for part in line.split(";  "):
            entry = ENTRY.match(part)
            out += [entry[1], f"    {entry[2]}"] if entry else [f"    {part}"]
    return out


def in_text(line: str) -> str:
    if line.lstrip().startswith((">>>", "...", "..", ":")) or line.startswith("       "):
        return line
    line = STAR_OF_A_PATTERN.sub(r"\\*", line)
    return FITTED.sub(r"``\1``", line)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-skip-member", skip_foreign)
