"""``GeometricMixtureHead``: the soft union of planes as the last layer of a PyTorch network.

    z_cm = w_cm . x + b_cm,   s_c = log( sum_m exp(k z_cm) ) / k,   loss = cross_entropy(s, y)

``forward`` returns the class scores s / T, the logits of a cross-entropy; T is 1 unless it is
learnt or fitted. ``penalty`` and ``anneal`` are the usage-aware penalty and the annealing of the
sharpness that the estimator uses. ``start_from`` and ``without_idle_planes`` are its k-means start
and its removal of planes. ``to_model`` makes a ``GeometricMixture`` over the network's features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from geomix.core.array_api import plane_slots, pool_slots
from geomix.core.calibration import PRIOR_SCALE, fit_temperature
from geomix.core.feature_map import linear_map
from geomix.core.lifts import Standardize
from geomix.core.planes import Planes, class_starts
from geomix.model import GeometricMixture
from geomix.table.schema import numeric_schema
from geomix.training.initial_planes import initial_planes
from geomix.training.plane_counts import find_clusters
from geomix.training.rows import Rows
from geomix.training.schedules import sharpness_at
from geomix.training.settings import Settings
from geomix.training.spare_planes import without_spare_planes


class GeometricMixtureHead(torch.nn.Module):
    """Class scores as soft unions of planes, in place of a last ``torch.nn.Linear``.

    Parameters
    ----------
    in_features : width of the input
    n_classes : number of classes
    n_planes : planes per class, one number or one for each class
    sharpness : k of the soft-OR at the end of training
    sharpness_start : k at the start; None: the same. ``anneal`` goes from one to the other
    learn_temperature : whether T is a parameter of the training; it has no penalty
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
        learn_temperature: bool = False,
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
        self.log_temperature = torch.nn.Parameter(
            torch.zeros((), **placed), requires_grad=learn_temperature
        )
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
        """Class scores s / T, (n_rows, n_classes): the logits."""
        return self._pooled(self.plane_scores(x))[0] / self.temperature

    @property
    def temperature(self) -> Any:
        """T, a tensor."""
        return torch.exp(self.log_temperature)

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

    def start_from(self, x: Any, y: Any, seed: int = 0) -> None:
        """Set the planes from k-means centres of the features of each class, in place.

        x : (n_rows, in_features), features of rows of all classes, best after the network has been
        trained for some epochs;  y : (n_rows,) class codes. A class needs as many distinct rows
        as it has planes.
        """
        rows = self._rows(x, y)
        X, wanted = rows.X, np.array(self.per_class)
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale[scale == 0.0] = 1.0
        rows = Rows((X - mean) / scale, rows.y, rows.weight)
        clusters = find_clusters(rows, self.n_classes, wanted, Settings(), seed)
        for code in np.flatnonzero(clusters.planes_per_class < wanted):
            raise ValueError(
                f"Class {code} has distinct rows for {clusters.planes_per_class[code]} of its "
                f"{wanted[code]} planes; pass more rows, or fewer n_planes."
            )
        sharpness, rng = float(self.sharpness), np.random.default_rng(seed)
        planes, _ = initial_planes(rows, clusters, "kmeans", sharpness, 0.0, rng)
        weights = planes.weights / scale
        with torch.no_grad():
            self.weight.copy_(torch.as_tensor(weights))
            self.bias.copy_(torch.as_tensor(planes.biases - weights @ mean))
            self.log_temperature.zero_()

    def without_idle_planes(self, x: Any, y: Any) -> GeometricMixtureHead:
        """A head without idle planes and copies, judged by features of training rows.

        A plane is idle if it has less than 1 % of the responsibility for the rows of its class.
        Give the optimiser the parameters of the new head.
        """
        rows = self._rows(x, y)
        planes = without_spare_planes(self._planes(), rows, float(self.sharpness))
        head = GeometricMixtureHead(
            self.in_features,
            self.n_classes,
            planes.per_class.tolist(),
            self.sharpness_range[1],
            self.sharpness_range[0],
            learn_temperature=self.log_temperature.requires_grad,
            device=self.weight.device,
            dtype=self.weight.dtype,
        )
        with torch.no_grad():
            head.weight.copy_(torch.as_tensor(planes.weights))
            head.bias.copy_(torch.as_tensor(planes.biases))
            head.log_temperature.copy_(self.log_temperature)
            head.sharpness.copy_(self.sharpness)
        return head

    def fit_temperature(self, x: Any, y: Any) -> float:
        """Set T to the one with the lowest log-loss on held-out rows, and return it."""
        rows, planes = self._rows(x, y), self._planes()
        scores = planes.pooled(planes.scores(rows.X), float(self.sharpness))[0]
        T = float(fit_temperature(scores, rows.y, rows.weight, PRIOR_SCALE))
        with torch.no_grad():
            self.log_temperature.fill_(float(np.log(T)))
        return T

    def _rows(self, x: Any, y: Any) -> Rows:
        """Features and class codes as checked arrays in float64."""
        X = torch.as_tensor(x).detach().cpu().double().numpy()
        codes = torch.as_tensor(y).detach().cpu().numpy().astype(np.intp)
        if X.ndim != 2 or X.shape[1] != self.in_features or codes.shape != X.shape[:1]:
            raise ValueError(
                f"Got x of shape {X.shape} and y of shape {codes.shape}; expected "
                f"(n_rows, {self.in_features}) and (n_rows,)."
            )
        if not np.isfinite(X).all():
            raise ValueError("x has values that are not finite; expected finite features.")
        missing = np.flatnonzero(np.bincount(codes.clip(0), minlength=self.n_classes) == 0)
        if len(codes) == 0 or codes.min() < 0 or codes.max() >= self.n_classes or len(missing):
            raise ValueError(
                f"y needs rows of every class code from 0 to {self.n_classes - 1}, and no others."
            )
        return Rows(X, codes, np.ones(len(codes)))

    def _planes(self) -> Planes:
        return Planes(
            self.weight.detach().cpu().double().numpy().copy(),
            self.bias.detach().cpu().double().numpy().copy(),
            class_starts(self.per_class),
        )

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
        return GeometricMixture(
            labels,
            names,
            linear_map(as_they_are, None),
            self._planes(),
            float(self.sharpness),
            temperature * float(self.temperature.detach()),
            numeric_schema(names),
        )
