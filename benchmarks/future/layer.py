"""The head in a network: Linear and sub-centre heads, and geomix's with each of its parts.

    python benchmarks/future/layer.py [--data FOLDER] [--seeds 3]

A body of two layers with 16 features is trained jointly with its head by Adam and cross-entropy
(label smoothing 0.02, L2 1e-4 on the head). Heads with several planes have four per class.
"sub-centre" takes the largest of four linear scores. "geomix" starts at random; "k-means start"
sets its planes from the features after a fifth of the epochs; "pruned" removes idle planes and
copies after three fifths; "learnt T" trains a temperature. An idle plane has less than 1 % of the
responsibility for the training rows of its class.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from runs import RESULTS, arguments, every_run, load, measure, page
from sklearn.model_selection import train_test_split
from torch.nn.functional import cross_entropy

from geomix.torch import GeometricMixtureHead

EPOCHS = {"digits": 30, "mnist": 12}
WIDTHS = {"digits": (64, 32, 16), "mnist": (784, 64, 16)}
# Rows of mnist: training and testing.
MOST_ROWS = (6_000, 4_000)
N_PLANES = 4
N_CLASSES = 10
IDLE = 0.01
MODELS = (
    "Linear", "sub-centre", "geomix", "geomix, k-means start", "geomix, pruned",
    "geomix, k-means start, pruned", "geomix, all, learnt T",
)  # fmt: skip
FIGURES = ("log-loss", "accuracy", "idle share", "planes")


class SubCentres(torch.nn.Module):
    """The largest of several linear scores of each class."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(n_inputs, N_CLASSES * N_PLANES)

    def forward(self, x: Any) -> Any:
        return self.linear(x).unflatten(1, (N_CLASSES, N_PLANES)).amax(dim=2)

    def responsibilities(self, x: Any) -> Any:
        Z = self.linear(x).unflatten(1, (N_CLASSES, N_PLANES))
        return (Z.amax(dim=2, keepdim=True) == Z).double().flatten(1)


def first_head(model: str, width: int) -> Any:
    if model == "Linear":
        return torch.nn.Linear(width, N_CLASSES)
    if model == "sub-centre":
        return SubCentres(width)
    learnt = model.endswith("learnt T")
    return GeometricMixtureHead(width, N_CLASSES, N_PLANES, 6.0, 3.0, learn_temperature=learnt)


def penalty(head: Any, features: Any) -> Any:
    if isinstance(head, GeometricMixtureHead):
        return head.penalty(head.usage(features))
    weight = head.weight if isinstance(head, torch.nn.Linear) else head.linear.weight
    return 1e-4 * (weight**2).sum()


def trained(model: str, X: Any, y: Any, widths: tuple[int, ...], epochs: int, seed: int) -> Any:
    torch.manual_seed(seed)
    relu, (inputs, hidden, width) = torch.nn.ReLU(), widths
    first, second = torch.nn.Linear(inputs, hidden), torch.nn.Linear(hidden, width)
    body = torch.nn.Sequential(first, relu, second, relu)
    head = first_head(model, width)
    several = isinstance(head, GeometricMixtureHead)
    optimiser = None
    for epoch in range(epochs):
        if several:
            head.anneal(epoch / (epochs / 2))
        changed = several and _changed(
            model, head, body, X, y, epoch / epochs, (epoch + 1) / epochs
        )
        head = changed or head
        if optimiser is None or changed:
            rate = 1e-2 * (1.0 - epoch / epochs)
            optimiser = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=rate)
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * (1.0 - epoch / epochs)
        for batch in torch.randperm(len(X)).split(64):
            features = body(X[batch])
            loss = cross_entropy(head(features), y[batch], label_smoothing=0.02)
            loss = loss + penalty(head, features)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return body, head


def _changed(
    model: str, head: Any, body: Any, X: Any, y: Any, before: float, after: float
) -> Any | None:
    """The head with other planes, at the two epochs at which that may happen."""
    with torch.no_grad():
        if before <= 0.2 < after and ("k-means" in model or "all" in model):
            head.start_from(body(X), y)
            return head
        if before <= 0.6 < after and ("pruned" in model or "all" in model):
            return head.without_idle_planes(body(X), y)
    return None


def idle_share(head: Any, features: Any, y: Any) -> tuple[float, int]:
    if isinstance(head, torch.nn.Linear):
        return 0.0, N_CLASSES
    A = head.responsibilities(features)
    several = isinstance(head, GeometricMixtureHead)
    class_of = head._class_of if several else torch.arange(A.shape[1]) // N_PLANES
    shares = [float(A[y == code, p].mean()) for p, code in enumerate(class_of)]
    return float(np.mean(np.array(shares) < IDLE)), len(shares)


def run(name: str, _: str, model: str, seed: int, data: Path) -> list[float]:
    X, y = load(name, data)
    X, y = np.asarray(X, dtype=np.float32), np.asarray(y)
    X /= X.max()
    sizes: dict[str, Any] = {"test_size": 0.25}
    if name == "mnist":
        sizes = dict(zip(("train_size", "test_size"), MOST_ROWS, strict=True))
    X, X_test, y, y_test = map(
        torch.as_tensor, train_test_split(X, y, stratify=y, random_state=seed, **sizes)
    )
    body, head = trained(model, X, y, WIDTHS[name], EPOCHS[name], seed)
    with torch.no_grad():
        scores = head(body(X_test))
        idle, n_planes = idle_share(head, body(X), y)
        accuracy = float((scores.argmax(dim=1) == y_test).double().mean())
        return [float(cross_entropy(scores, y_test)), accuracy, idle, n_planes]


def main() -> None:
    options = arguments(__doc__, 3)
    torch.set_num_threads(1)
    path = RESULTS / "layer.csv"
    if not options.report:
        wanted = every_run(options, EPOCHS, MODELS)
        measure(path, FIGURES, wanted, functools.partial(run, data=options.data))
    page(path, "The head in a network", FIGURES, {"accuracy"}, __doc__.split("\n\n")[2])


if __name__ == "__main__":
    main()
