"""A tree of classes: groups of groups, with class labels as leaves.

    {"plant": ["moss", "fern"], "animal": {"bird": ["owl", "crow"], "fish": ["cod", "eel"]}}

The distance between two classes is the number of steps from one to the other: two within a group,
more for each level that lies between. It is what a mistake costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.errors import InvalidParameterError
from geomix.table.labels import plain_value


@dataclass(frozen=True, eq=False)
class Group:
    """name : path of names from the root, () for the root;  children : codes of the classes below
    each child, in the order of the user's tree."""

    name: tuple[str, ...]
    children: tuple[IntArray, ...]

    @property
    def codes(self) -> IntArray:
        """Codes of all classes below, ascending."""
        return np.sort(np.concatenate(self.children))


@dataclass(frozen=True, eq=False)
class ClassTree:
    """classes : labels, whose positions are codes;  groups : from the root down."""

    classes: Any
    groups: tuple[Group, ...]

    @cached_property
    def depths(self) -> IntArray:
        """Steps from the root to each class."""
        below = np.concatenate([group.codes for group in self.groups])
        return np.bincount(below, minlength=self.n_classes)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def distances(self) -> FloatArray:
        """Steps between every two classes, (n_classes, n_classes)."""
        shared = np.zeros((self.n_classes, self.n_classes))
        for group in self.groups:
            shared[np.ix_(group.codes, group.codes)] += 1.0
        found = self.depths[:, None] + self.depths[None, :] - 2.0 * shared + 2.0
        np.fill_diagonal(found, 0.0)
        return np.asarray(found)

    def group_probabilities(self, P: FloatArray) -> dict[str, FloatArray]:
        """Probability of each named group, the sum of its classes, by its path 'animal / bird'."""
        return {
            " / ".join(group.name): P[:, group.codes].sum(axis=1)
            for group in self.groups
            if group.name
        }


def read_tree(tree: Any, classes: Any) -> ClassTree:
    """A nested dict with lists of labels at its ends, checked against the classes of y.

    None is a tree with one group.
    """
    labels = classes.tolist()
    code_of = {label: code for code, label in enumerate(labels)}
    seen: dict[Any, tuple[str, ...]] = {}
    groups: list[Group] = []

    def walk(node: Any, name: tuple[str, ...]) -> IntArray:
        place = " / ".join(name) or "the root"
        at = len(groups)
        children = []
        if isinstance(node, Mapping):
            children = [walk(child, (*name, str(key))) for key, child in node.items()]
        elif isinstance(node, (list, tuple, set, frozenset, np.ndarray)):
            ends = list(node)
            if isinstance(node, (set, frozenset)):  # in the order of the classes
                ends.sort(key=lambda label: code_of.get(label, -1))
            children = [_leaf(label, place, name, code_of, seen) for label in ends]
        else:
            raise InvalidParameterError(
                f"Got {node!r} below {place} of the tree; expected a dict of groups or a list of "
                "class labels."
            )
        if not children:
            raise InvalidParameterError(f"The tree has nothing below {place}; remove the group.")
        group = Group(name, tuple(children))
        groups.insert(at, group)
        return group.codes

    walk(labels if tree is None else tree, ())
    _check_paths_differ(groups)
    for label in labels:
        if label not in seen:
            raise InvalidParameterError(
                f"The tree does not have the class {label!r} of y; put it into a group."
            )
    return ClassTree(classes, tuple(groups))


def _check_paths_differ(groups: list[Group]) -> None:
    paths = [" / ".join(group.name) for group in groups]
    for path, count in Counter(paths).items():
        if count > 1:
            raise InvalidParameterError(
                f"The tree has two groups with the path {path!r}; give them different names."
            )


def _leaf(
    label: Any,
    place: str,
    name: tuple[str, ...],
    code_of: dict[Any, int],
    seen: dict[Any, tuple[str, ...]],
) -> IntArray:
    label = plain_value(label)
    if isinstance(label, (list, tuple, set, dict, np.ndarray)):
        raise InvalidParameterError(
            f"The tree has {label!r} in the list below {place}; expected class labels there, and a "
            "dict of names for groups within a group."
        )
    if label not in code_of:
        raise InvalidParameterError(
            f"The tree names the class {label!r} below {place}, which is not in y."
        )
    if label in seen:
        raise InvalidParameterError(
            f"The tree has the class {label!r} twice; keep it in one group only."
        )
    seen[label] = name
    return np.array([code_of[label]])
