"""The tensors of a file, read one by one with checks of shape, type and range.

``check_empty`` raises if a tensor was not read, since it then does not belong to the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomix.arrays import FloatArray, IntArray
from geomix.errors import ModelFileError

# With weights within this and features within 1e150 no score of a finite row overflows.
LARGEST_WEIGHT = 1e100
LARGEST_FLOAT = float(np.finfo(np.float64).max)


@dataclass
class TensorReader:
    """The tensors of a file, and the names of those that were read."""

    arrays: dict[str, Any]
    taken: set[str] = field(default_factory=set)

    def numbers(self, name: str, *shape: int, most: float = LARGEST_FLOAT) -> FloatArray:
        """A float tensor of this shape, with absolute values of at most ``most``."""
        array = self._take(name, shape)
        if array.dtype != np.float64:
            raise ModelFileError(f"tensor {name} holds integers; expected floats")
        # Comparisons with NaN are false, so NaN raises; minimum and maximum make no copy.
        if array.size and not (array.min() >= -most and array.max() <= most):
            raise ModelFileError(f"tensor {name} holds a number that is not within ±{most:g}")
        return array

    def integers(self, name: str, *shape: int) -> IntArray:
        array = self._take(name, shape)
        if array.size and array.dtype != np.int64:
            raise ModelFileError(f"tensor {name} holds floats; expected integers")
        return array.astype(np.intp, copy=False)

    def length(self, name: str) -> int:
        """The size of a tensor's first dimension; 0 if it is missing."""
        return len(self.arrays[name]) if name in self.arrays else 0

    def check_empty(self) -> None:
        left = sorted(set(self.arrays) - self.taken)
        if left:
            raise ModelFileError(f"tensor {left[0]} does not belong to this model")

    def _take(self, name: str, shape: tuple[int, ...]) -> Any:
        self.taken.add(name)
        array = self.arrays.get(name)
        if array is None:
            if 0 not in shape:
                raise ModelFileError(f"tensor {name} of shape {shape} is missing")
            return np.zeros(shape)
        if array.shape != shape:
            raise ModelFileError(f"tensor {name} has shape {array.shape}; expected {shape}")
        return array
