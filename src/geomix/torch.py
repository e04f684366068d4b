"""``GeometricMixtureHead``: the soft union of planes as the last layer of a PyTorch network.

    z_cm = w_cm . x + b_cm,   s_c = log( sum_m exp(k z_cm) ) / k,   loss = cross_entropy(s, y)

``forward`` returns the class scores s, the logits of a cross-entropy. ``penalty`` and ``anneal``
are the usage-aware penalty and the annealing of the sharpness that the estimator uses. ``to_model``
makes an ordinary ``GeometricMixture`` over the network's features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomix.core.array_api import plane_slots, pool_slots
from geomix.core.feature_map import linear_map
from geomix.core.lifts import Standardize
from geomix.core.planes import Planes, class_starts
from geomix.model import GeometricMixture
from geomix.table.schema import numeric_schema
from geomix.training.schedules import sharpness_at

try:
    import torch
except ImportError as error:
    raise ImportError(
        "geomix.torch needs PyTorch; install it with pip install 'geomix[torch]'."
    ) from error

__all__ = ["GeometricMixtureHead"]


class GeometricMixtureHead(torch.nn.Module):
    """Class scores as soft unions of planes, in place of a last ``torch.nn.Linear``.

    Parameters
    ----------
    in_features : width of the input
    n_classes : number of classes
    n_planes : planes per class, one number or one for each class
    sharpness : k of the soft-OR at the end of training
    sharpness_start : k at the start; None: the same. ``anneal`` goes from one to the other
    device, dtype : of the parameters

    Examples
    --------
    >>> head = GeometricMixtureHead(8, n_classes=3, n_planes=2)
    >>> scores = head(torch.zeros(5, 8))  # (5, 3), logits of torch.nn.functional.cross_entropy
    >>> head.responsibilities(torch.zeros(5, 8)).shape
    torch.Size([5, 6])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        n_planes: int | Sequence[int] = 4,
        sharpness: float = 6.0,
        sharpness_start: float | None = None,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        per_class = [n_planes] * n_classes if isinstance(n_planes, int) else list(n_planes)
        if len(per_class) != n_classes or min(per_class, default=0) < 1:
            raise ValueError(
                f"Got n_planes={n_planes!r} for {n_classes} classes; expected an integer of at "
                "least 1, or one for each class."
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.per_class = tuple(per_class)
        self.sharpness_range = (sharpness_start or sharpness, sharpness)
        placed = {"device": device, "dtype": dtype}
        self.weight = torch.nn.Parameter(torch.empty(sum(per_class), in_features, **placed))
        self.bias = torch.nn.Parameter(torch.empty(sum(per_class), **placed))
        start = class_starts(per_class)
        slots, is_plane = plane_slots(start)
        self.register_buffer("sharpness", torch.tensor(self.sharpness_range[0], **placed))
        self.register_buffer("_slots", torch.as_tensor(slots, device=device))
        self.register_buffer("_is_plane", torch.as_tensor(is_plane, device=device))
        self.register_buffer(
            "_class_of", torch.as_tensor(np.repeat(np.arange(n_classes), per_class), device=device)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Random directions; biases that give all classes the same score at zero."""
        with torch.no_grad():
            self.weight.normal_(0.0, self.in_features**-0.5)
            counts = torch.tensor(self.per_class, dtype=self.bias.dtype, device=self.bias.device)
            self.bias.copy_(-torch.log(counts)[self._class_of] / self.sharpness)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, n_classes={self.n_classes}, "
            f"n_planes={self.per_class}, sharpness={float(self.sharpness):g}"
        )

    def plane_scores(self, x: Any) -> Any:
        """z, (n_rows, n_planes), columns grouped by class."""
        return torch.nn.functional.linear(x, self.weight, self.bias)

    def forward(self, x: Any) -> Any:
        """Class scores s, (n_rows, n_classes): the logits."""
        return self._pooled(self.plane_scores(x))[0]

    def responsibilities(self, x: Any) -> Any:
        """a, (n_rows, n_planes): the share of each plane in its class's score; the shares of a
        class sum to one."""
        return self._pooled(self.plane_scores(x))[1]

    def _pooled(self, Z: Any) -> tuple[Any, Any]:
        by_class = Z[..., self._slots].masked_fill(~self._is_plane, -torch.inf)
        # The largest score cancels in S, so it is a constant for the gradient.
        top = by_class.detach().amax(dim=-1, keepdim=True)
        S, A = pool_slots(by_class, top, self.sharpness, torch)
        return S, A[..., self._is_plane]

    def usage(self, x: Any) -> Any:
        """Mean responsibility of each plane over the rows, (n_planes,), as a constant."""
        with torch.no_grad():
            return self.responsibilities(x).mean(dim=0)

    def penalty(
        self,
        usage: Any,
        l2: float = 1e-4,
        beta: float = 0.5,
        delta: float = 0.01,
        shrink_to_mean: float = 0.0,
    ) -> Any:
        """Usage-aware L2 to add to a loss: see ``geomix.core.objective``."""
        coefficients = l2 * (1.0 + beta / (usage + delta))
        value = (coefficients * (self.weight**2).sum(dim=1)).sum()
        if shrink_to_mean:
            sums = self.weight.new_zeros(self.n_classes, self.in_features)
            sums = sums.index_add(0, self._class_of, coefficients[:, None] * self.weight)
            total = coefficients.new_zeros(self.n_classes).index_add(
                0, self._class_of, coefficients
            )
            means = sums / torch.where(total > 0, total, 1.0)[:, None]
            value = value - shrink_to_mean * (total * (means**2).sum(dim=1)).sum()
        return value

    def anneal(self, progress: float) -> float:
        """Set the sharpness for this much of the training done, 0 to 1; call it every epoch."""
        sharpness = sharpness_at(progress, *self.sharpness_range)
        self.sharpness.fill_(sharpness)
        return sharpness

    @classmethod
    def from_model(
        cls, model: GeometricMixture, *, device: Any = None, dtype: Any = None
    ) -> GeometricMixtureHead:
        """The same probabilities from raw columns; linear lift only.

        Standardising and temperature are folded in: (W, b, k) -> (W/T, b/T, kT).
        """
        if model.expand is not None or model.planes.n_members > 1:
            raise ValueError(
                "Got a model with categories, missing values or several members; expected one of "
                "complete numbers with n_members=1."
            )
        planes, T = model.folded, model.temperature
        head = cls(
            model.n_features,
            planes.n_classes,
            planes.per_class.tolist(),
            model.sharpness * T,
            device=device,
            dtype=dtype,
        )
        with torch.no_grad():
            head.weight.copy_(torch.as_tensor(planes.weights / T))
            head.bias.copy_(torch.as_tensor(planes.biases / T))
        return head

    def to_model(
        self, classes: Any = None, columns: Sequence[str] | None = None, temperature: float = 1.0
    ) -> GeometricMixture:
        """A frozen model over this layer's input, in float64.

        classes : labels, 0, 1, ... if None;  columns : names of the inputs, x0, x1, ... if None.
        """
        width = self.in_features
        names = tuple(f"x{j}" for j in range(width)) if columns is None else tuple(columns)
        labels = np.arange(self.n_classes) if classes is None else np.asarray(classes)
        if len(names) != width or len(labels) != self.n_classes:
            raise ValueError(
                f"Got {len(names)} columns and {len(labels)} classes; expected {width} and "
                f"{self.n_classes}."
            )
        every = np.arange(width)
        as_they_are = Standardize(every, np.zeros(width), np.ones(width), None, width)
        planes = Planes(
            self.weight.detach().cpu().double().numpy().copy(),
            self.bias.detach().cpu().double().numpy().copy(),
            class_starts(self.per_class),
        )
        return GeometricMixture(
            labels,
            names,
            linear_map(as_they_are, None),
            planes,
            float(self.sharpness),
            temperature,
            numeric_schema(names),
        )
