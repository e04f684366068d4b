"""The head in a network: Linear and sub-centre heads, and geomix's with each of its parts.

    python benchmarks/future/layer.py [--data FOLDER] [--seeds 5]

Heads with several planes have four per class; all are trained by Adam and cross-entropy (label
smoothing 0.02, L2 1e-4). "joint": a body of two layers with 16 features is trained with its head.
"frozen": the features are the first eight principal components of the pixels and stay as they are,
as those of a body that was trained for something else. "sub-centre" takes the largest of four
linear scores. "geomix" starts at random; "k-means start" sets its planes from the features, after a
fifth of the epochs where those are learnt; "pruned" removes idle planes and copies after three
fifths and at the end; "learnt T" trains a temperature, too. An idle plane has less than 1 % of the
responsibility for the training rows of its class.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from runs import RESULTS, arguments, load, measure, page, seeds_of
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from torch.nn.functional import cross_entropy

from geomix.torch import GeometricMixtureHead

EPOCHS = {"digits": 30, "mnist": 12}
WIDTHS = {"digits": (64, 32, 16), "mnist": (784, 64, 16)}
# Rows of mnist: training and testing.
MOST_ROWS = (6_000, 4_000)
JOINT, FROZEN = "joint", "frozen"
N_COMPONENTS = 8
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


def body_of(setting: str, X: Any, widths: tuple[int, ...]) -> Any:
    """The network below the head; a frozen one has no parameters."""
    inputs, hidden, width = widths
    if setting == JOINT:
        relu = torch.nn.ReLU()
        first, second = torch.nn.Linear(inputs, hidden), torch.nn.Linear(hidden, width)
        return torch.nn.Sequential(first, relu, second, relu)
    components = PCA(N_COMPONENTS, whiten=True, random_state=0).fit(X.numpy())
    return Frozen(components)


class Frozen(torch.nn.Module):
    """Whitened principal components."""

    def __init__(self, components: Any) -> None:
        super().__init__()
        rotation = components.components_.T / np.sqrt(components.explained_variance_)
        self.register_buffer("mean", torch.as_tensor(components.mean_))
        self.register_buffer("rotation", torch.as_tensor(rotation))

    def forward(self, x: Any) -> Any:
        return (x - self.mean) @ self.rotation


def trained(model: str, setting: str, X: Any, y: Any, name: str, seed: int) -> Any:
    torch.manual_seed(seed)
    epochs, widths = EPOCHS[name], WIDTHS[name]
    body = body_of(setting, X, widths)
    head = first_head(model, widths[-1] if setting == JOINT else N_COMPONENTS)
    several = isinstance(head, GeometricMixtureHead)
    changes = changes_of(model, setting, epochs) if several else {}
    optimiser = None
    for epoch in range(epochs):
        if several:
            head.anneal(epoch / (epochs / 2))
        if epoch in changes:
            head = changes[epoch](head, body, X, y)
        rate = 1e-2 * (1.0 - epoch / epochs)
        if optimiser is None or epoch in changes:
            optimiser = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=rate)
        for group in optimiser.param_groups:
            group["lr"] = rate
        one_epoch(body, head, optimiser, X, y)
    if epochs in changes:
        head = changes[epochs](head, body, X, y)
    return body, head


def one_epoch(body: Any, head: Any, optimiser: Any, X: Any, y: Any) -> None:
    for batch in torch.randperm(len(X)).split(64):
        features = body(X[batch])
        loss = cross_entropy(head(features), y[batch], label_smoothing=0.02)
        loss = loss + penalty(head, features)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def changes_of(model: str, setting: str, epochs: int) -> dict[int, Any]:
    """What changes the planes of a head, by the epoch before which it does."""
    found: dict[int, Any] = {}
    if "k-means" in model or "all" in model:
        found[epochs // 5 if setting == JOINT else 0] = _from_features
    if "pruned" in model or "all" in model:
        found[3 * epochs // 5] = found[epochs] = _without_idle
    return found


def _from_features(head: Any, body: Any, X: Any, y: Any) -> Any:
    with torch.no_grad():
        head.start_from(body(X), y)
    return head


def _without_idle(head: Any, body: Any, X: Any, y: Any) -> Any:
    with torch.no_grad():
        return head.without_idle_planes(body(X), y)


def idle_share(head: Any, features: Any, y: Any) -> tuple[float, int]:
    if isinstance(head, torch.nn.Linear):
        return 0.0, N_CLASSES
    A = head.responsibilities(features)
    several = isinstance(head, GeometricMixtureHead)
    class_of = head._class_of if several else torch.arange(A.shape[1]) // N_PLANES
    shares = [float(A[y == code, p].mean()) for p, code in enumerate(class_of)]
    return float(np.mean(np.array(shares) < IDLE)), len(shares)


def run(name: str, setting: str, model: str, seed: int, data: Path) -> list[float]:
    X, y = load(name, data)
    X, y = np.asarray(X, dtype=np.float32), np.asarray(y)
    X /= X.max()
    sizes: dict[str, Any] = {"test_size": 0.25}
    if name == "mnist":
        sizes = dict(zip(("train_size", "test_size"), MOST_ROWS, strict=True))
    X, X_test, y, y_test = map(
        torch.as_tensor, train_test_split(X, y, stratify=y, random_state=seed, **sizes)
    )
    body, head = trained(model, setting, X, y, name, seed)
    with torch.no_grad():
        scores = head(body(X_test))
        idle, n_planes = idle_share(head, body(X), y)
        accuracy = float((scores.argmax(dim=1) == y_test).double().mean())
        return [float(cross_entropy(scores, y_test)), accuracy, idle, n_planes]


def main() -> None:
    options = arguments(__doc__, 5)
    torch.set_num_threads(1)
    path = RESULTS / "layer.csv"
    if not options.report:
        wanted = [
            (name, setting, model, seed)
            for seed in seeds_of(options)
            for setting in (JOINT, FROZEN)
            for name in EPOCHS
            for model in MODELS
        ]
        measure(path, FIGURES, wanted, functools.partial(run, data=options.data))
    page(path, "The head in a network", FIGURES, {"accuracy"}, __doc__.split("\n\n")[2])


if __name__ == "__main__":
    main()
