"""What a fit on a fold leaves behind: planes over features, and where a next one may start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from geomix.arrays import FloatArray
from geomix.core.feature_map import FeatureMap
from geomix.core.planes import Planes
from geomix.training.features import Features
from geomix.training.history import Record
from geomix.training.preparation import Preparation
from geomix.training.rows import Rows
from geomix.training.run import Trained


class Start(NamedTuple):
    """Where training on a fold ended, for a similar candidate to start from. It holds no features:
    those of every width at once would take too much memory."""

    planes: Planes
    init: str
    n_iter: int


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A model in the making: everything that answers a row, as it stands at one iteration."""

    feature_map: FeatureMap
    planes: Planes


def snapshot(features: Features, planes: Planes) -> Snapshot:
    return Snapshot(features.feature_map, features.expanded(planes))


# Called after every iteration with its record and the model so far; True ends training.
Watch: TypeAlias = "Callable[[Record, Callable[[], Snapshot]], bool | None]"


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate trained on a fold; ``trained.planes`` are over ``features``."""

    features: Features
    train: Rows
    valid: Rows | None
    trained: Trained
    init: str

    @property
    def is_small(self) -> bool:
        """Whether the features can be kept with the planes."""
        return self.features.is_small

    def to_keep(self, *, is_quick: bool) -> Fitted:
        """The fit without its rows, unless they are few, or expensive to make again: not quick."""
        if self.features.is_tiny:
            return self
        if is_quick and self.is_small and self.features.feature_map.lift.is_additive:
            return self.without_rows()
        self.features.unpack()
        unpack_rows(self.train, self.valid)
        return self

    def with_rows_of(self, preparation: Preparation) -> Fitted:
        """A fit that was kept, with its rows made again."""
        if len(self.train):
            return self
        features = preparation.again(self.features)
        return replace(self, features=features, train=features.rows, valid=features.held_out)

    def without_rows(self) -> Fitted:
        """The planes and the way to their features alone."""
        features = self.features.without_rows()
        return replace(self, features=features, train=features.rows, valid=None)

    def held_out_scores(self, sharpness: float) -> FloatArray:
        """Class scores of the validation rows, uncalibrated."""
        assert self.valid is not None
        return self.valid.prepared.class_scores(self.trained.planes, sharpness)


def unpack_rows(*parts: Rows | None) -> None:
    """Free the packed form of rows; it is made again where it is needed."""
    for rows in parts:
        if rows is not None:
            rows.unpack()
