"""Structure between classes: a tree of classes, and a chain over sequences.

    python benchmarks/future/structured.py [--data FOLDER] [--seeds 5]

Trees. Five tables with a tree of their classes, at most 4,000 training and 4,000 test rows (spoken
letters, isolet1: 400 training rows).
"single" is one model of all classes, "per group" one for each group; "near" predicts the class with
the smallest expected distance along the tree instead of the most probable one. Models have one
spline plane per class or child (preset "fast"). "distance" is the mean number of steps between the
predicted and the true class, 0 where it is correct.

Chain. Sequences of 20 positions, five classes that tend to stay (0.8) or to go to the next one;
every class has three Gaussian clusters in five columns, so that no linear score separates it.
Models are trained by Adam on 150 sequences and tested on 300. "Linear, chain" is a linear-chain
CRF. Log-loss is that of the marginal probability of each position.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from runs import RESULTS, arguments, every_run, measure, page, table_file
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from torch.nn.functional import cross_entropy

from geomix import GeometricMixtureClassifier, HierarchicalClassifier
from geomix.torch import GeometricMixtureHead, LinearChain

# Land cover, forest cover, places of proteins in a cell, grades of wine, and spoken letters.
TREES: dict[str, Any] = {
    "satimage": {
        "plants": ["2", "5"],
        "bare soil": {"red": ["1"], "grey": ["3", "4", "7"]},
    },
    "covertype": {
        "conifers": {"high": ["1", "2", "7"], "low": ["3", "6"]},
        "broadleaved": ["4", "5"],
    },
    "yeast": {
        "membrane": ["ME1", "ME2", "ME3", "EXC"],
        "inside": {
            "nucleus or cytosol": ["CYT", "NUC"],
            "organelles": ["MIT", "POX", "VAC", "ERL"],
        },
    },
    "wine_quality_white": {"low": ["3", "4", "5"], "high": ["6", "7", "8", "9"]},
    "isolet1": {
        "ends in ee": {"stops": list("BDPTG"), "others": list("CEVZ")},
        "begins with e": {"hissing": list("FSX"), "nasal": list("MN"), "l": ["L"]},
        "ends in ay": list("AHJK"),
        "ends in i": list("IY"),
        "ends in oo": list("QUW"),
        "alone": list("OR"),
    },
}
MODELS = ("single", "single, near", "per group", "per group, near")
FIGURES = ("log-loss", "accuracy", "distance")
CHAINS = ("Linear", "geomix head", "Linear, chain", "geomix head, chain")
MOST_ROWS = 4_000
FEW_ROWS = {"isolet1": 400}
FEWEST_ROWS = 20


def present(tree: Any, labels: set[str]) -> Any:
    """The tree without classes that a table does not have."""
    if isinstance(tree, dict):
        below = {name: present(child, labels) for name, child in tree.items()}
        return {name: child for name, child in below.items() if child}
    return [label for label in tree if label in labels]


def run_tree(name: str, _: str, model: str, seed: int, data: Path) -> list[float]:
    frame = pd.read_parquet(table_file(name, data))
    y = frame.pop("target").astype(str).to_numpy()
    labels, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, labels[counts >= FEWEST_ROWS])
    X, y = frame[kept], y[kept]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    most = FEW_ROWS.get(name, MOST_ROWS)
    if len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, stratify=y, random_state=seed)
    X_test, y_test = X_test[:MOST_ROWS], y_test[:MOST_ROWS]
    tree = present(TREES[name], set(y.tolist()))
    base = GeometricMixtureClassifier(preset="fast", random_state=0)
    clf = HierarchicalClassifier(
        base,
        tree=tree,
        strategy="single" if "single" in model else "per_group",
        minimize="distance" if "near" in model else "errors",
    ).fit(X, y)
    chosen, true = (np.searchsorted(clf.classes_, y) for y in (clf.predict(X_test), y_test))
    return [
        log_loss(y_test, clf.predict_proba(X_test), labels=clf.classes_),
        float(np.mean(chosen == true)),
        float(clf.tree_.distances[true, chosen].mean()),
    ]


N_CLASSES, N_COLUMNS, N_CLUSTERS, LENGTH = 5, 5, 3, 20
N_TRAIN, N_TEST = 150, 300


def sequences(n_sequences: int, centres: Any, rng: Any) -> tuple[Any, Any]:
    y = np.empty((n_sequences, LENGTH), dtype=int)
    y[:, 0] = rng.integers(0, N_CLASSES, n_sequences)
    for t in range(1, LENGTH):
        goes_on = rng.random(n_sequences) < 0.2
        y[:, t] = (y[:, t - 1] + goes_on) % N_CLASSES
    cluster = rng.integers(0, N_CLUSTERS, y.shape)
    X = centres[y, cluster] + rng.standard_normal((*y.shape, N_COLUMNS))
    return torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)


def run_chain(_: str, __: str, model: str, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.standard_normal((N_CLASSES, N_CLUSTERS, N_COLUMNS))
    X, y = sequences(N_TRAIN, centres, rng)
    X_test, y_test = sequences(N_TEST, centres, rng)
    torch.manual_seed(seed)
    chain = LinearChain(N_CLASSES) if "chain" in model else None
    if "geomix" in model:
        head: Any = GeometricMixtureHead(N_COLUMNS, N_CLASSES, 4)
        head.start_from(X.flatten(0, 1), y.flatten())
    else:
        head = torch.nn.Linear(N_COLUMNS, N_CLASSES)
    parameters = [*head.parameters(), *(chain.parameters() if chain is not None else ())]
    solver = torch.optim.Adam(parameters, lr=3e-2)
    for _epoch in range(60):
        for batch in torch.randperm(N_TRAIN).split(30):
            scores = head(X[batch])
            if chain is None:
                loss = cross_entropy(scores.flatten(0, 1), y[batch].flatten())
            else:
                loss = chain(scores, y[batch])
            solver.zero_grad()
            loss.backward()
            solver.step()
    with torch.no_grad():
        scores = head(X_test)
        P = torch.softmax(scores, dim=2) if chain is None else chain.marginals(scores)
        predicted = scores.argmax(dim=2) if chain is None else chain.predict(scores)
        own = P.gather(2, y_test[:, :, None]).clamp_min(1e-12)
    wrong = float((predicted != y_test).double().mean())
    return [float(-own.log().mean()), 1.0 - wrong, wrong]


def run(name: str, setting: str, model: str, seed: int, data: Path) -> list[float]:
    if name == "sequences":
        return run_chain(name, setting, model, seed)
    return run_tree(name, setting, model, seed, data)


def main() -> None:
    options = arguments(__doc__, 5)
    torch.set_num_threads(1)
    measured = functools.partial(run, data=options.data)
    _, _, trees, chains = (part.strip() for part in __doc__.split("\n\n"))
    path = RESULTS / "trees.csv"
    if not options.report:
        measure(path, FIGURES, every_run(options, TREES, MODELS), measured)
    page(path, "A tree of classes", FIGURES, {"accuracy"}, trees)
    path = RESULTS / "chain.csv"
    if not options.report:
        wanted = every_run(options, ["sequences"], CHAINS)
        measure(path, (*FIGURES[:2], "errors"), wanted, measured)
    page(path, "A chain over sequences", FIGURES[:2], {"accuracy"}, chains)


if __name__ == "__main__":
    main()
