"""Names of planes in text for people: planes of a class, and members, are counted from 1.

Indices count from 0 in the Python API, such as ``model.without_plane(label, 0)``, and in frames and
dicts, whose values are passed to it.
"""

from __future__ import annotations

from typing import Any


def plane_name(plane: int) -> str:
    """
    >>> plane_name(0)
    'plane 1'
    """
    return f"plane {plane + 1}"


def plane_of_class(label: Any, plane: int, member: int = 0) -> str:
    """Class and plane, and the member of an ensemble from its second one on.

    >>> plane_of_class("yes", 0)
    'yes/1'
    >>> plane_of_class("yes", 0, member=2)
    'yes/1 (member 3)'
    """
    of_member = f" (member {member + 1})" if member else ""
    return f"{label}/{plane + 1}{of_member}"


def counted_from_one(record: dict[str, Any]) -> dict[str, Any]:
    """A line of a printed table, its ``plane`` and ``member`` counted from 1.

    >>> counted_from_one({"label": "yes", "plane": 0})
    {'label': 'yes', 'plane': 1}
    """
    return {
        name: value + 1 if name in ("plane", "member") else value for name, value in record.items()
    }
