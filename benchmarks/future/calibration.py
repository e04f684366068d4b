"""Calibration-aware training: without scaling afterwards, and against scaling.

    python benchmarks/future/calibration.py [--data FOLDER] [--seeds 3] [--tables adult,magic]

Tables of the suite with at least 1,000 test rows. Two planes per class over spline features (16
knots) are trained by L-BFGS on 80 % of at most 4,000 training rows; the other 20 % choose the L2
penalty by plain log-loss, and then, at that penalty, the strength of each method. Every method has
the same number of iterations.

    cross-entropy   nothing else: the penalty alone is chosen by the log-loss without scaling
    scaling         the same planes and one temperature, fitted on the held-out rows
    learnt T        the temperature is a parameter of the training, without penalty
    held-out T      ... whose gradient comes from the held-out rows, in every step
    focal           focal loss, gamma of 1, 2 or 3
    soft ECE        cross-entropy plus 0.3, 1 or 3 times the soft calibration error, trained on
                    from the planes of cross-entropy: from the start of the others it is drawn to
                    planes that give every row the shares of the classes
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

from geomix import GeometricMixtureClassifier, Recipe
from geomix.core.calibration import expected_calibration_error, negative_log_likelihood
from geomix.table.reader import read_rows
from geomix.torch import GeometricMixtureHead, focal_loss, soft_calibration_error

TABLES = (
    "phoneme", "satimage", "higgs_7k", "wine_quality_white", "optdigits", "nursery", "magic",
    "letter", "electricity", "adult", "bank_marketing", "covertype", "shuttle",
)  # fmt: skip
# Half decades where the best one mostly is: a coarse grid would leave to T what is the penalty's.
PENALTIES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
GAMMAS = (1.0, 2.0, 3.0)
STRENGTHS = (0.3, 1.0, 3.0)
MODELS = ("cross-entropy", "scaling", "learnt T", "held-out T", "focal", "soft ECE")
FIGURES = ("log-loss", "ECE", "accuracy")
MOST_TRAINED, MOST_TESTED = 4_000, 4_000
N_ITERATIONS = 60
N_ROUNDS = 3


class Rows:
    """Spline features of training, held-out and test rows."""

    def __init__(self, name: str, seed: int, data: Path) -> None:
        X, y = load(name, data)
        kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 40))  # every part has every class
        X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
        if len(y) > MOST_TRAINED:
            X, _, y, _ = train_test_split(
                X, y, train_size=MOST_TRAINED, stratify=y, random_state=seed
            )
        X_train, X_held, y_train, y_held = train_test_split(
            X, y, test_size=0.2, stratify=y, random_state=seed
        )
        self.n_classes = int(y.max()) + 1
        fast = GeometricMixtureClassifier(
            preset="fast", max_iter=1, advanced=Recipe(n_knots=16), random_state=0
        ).fit(X_train, y_train)

        def features(part: Any) -> Any:
            encoded = read_rows(fast, part, reset=False, schema=fast.model_.schema)
            return torch.as_tensor(
                np.asarray(fast.model_.feature_map(encoded)), dtype=torch.float32
            )

        self.train = features(X_train), torch.as_tensor(y_train)
        self.held = features(X_held), torch.as_tensor(y_held)
        self.test = features(X_test[:MOST_TESTED]), torch.as_tensor(y_test[:MOST_TESTED])


def trained(
    rows: Rows,
    l2: float,
    loss: Any,
    seed: int,
    *,
    learnt: bool = False,
    start: Any = None,
    n_iterations: int = N_ITERATIONS,
) -> Any:
    """A head trained by L-BFGS, from ``start`` or from random planes that depend on the seed."""
    torch.manual_seed(seed)
    x, y = rows.train
    head = GeometricMixtureHead(x.shape[1], rows.n_classes, 2, learn_temperature=learnt)
    with torch.no_grad():
        head.weight.mul_(0.1)
    if start is not None:
        head.load_state_dict(start.state_dict())
    _minimise(head, lambda: loss(head(x), y) + _penalty(head, x, l2), n_iterations)
    return head


def _penalty(head: Any, x: Any, l2: float) -> Any:
    return head.penalty(head.usage(x), l2=l2)


def _minimise(head: Any, value: Any, n_iterations: int) -> None:
    if n_iterations == 0:
        return
    free = [one for one in head.parameters() if one.requires_grad]
    solver = torch.optim.LBFGS(free, max_iter=n_iterations, line_search_fn="strong_wolfe")

    def closure() -> Any:
        solver.zero_grad()
        found = value()
        found.backward()
        return found

    solver.step(closure)


def with_held_out_temperature(rows: Rows, l2: float, seed: int, start: Any) -> Any:
    """Planes by the training rows and T by the held-out rows, in turns."""
    head = trained(rows, l2, cross_entropy, seed, start=start, n_iterations=0)
    x, y = rows.train
    for _ in range(N_ROUNDS):
        head.fit_temperature(*rows.held)
        _minimise(
            head,
            lambda: cross_entropy(head(x), y) + _penalty(head, x, l2),
            N_ITERATIONS // N_ROUNDS,
        )
    return head


def held_out_loss(head: Any, rows: Rows) -> float:
    with torch.no_grad():
        return float(cross_entropy(head(rows.held[0]), rows.held[1]))


@functools.lru_cache(maxsize=1)
def heads(name: str, seed: int, data: Path) -> tuple[Rows, dict[str, Any]]:
    """One head for each method."""
    rows = Rows(name, seed, data)

    def best(made: list[Any]) -> Any:
        return min(made, key=lambda head: held_out_loss(head, rows))

    by_l2 = {l2: trained(rows, l2, cross_entropy, seed) for l2 in PENALTIES}
    l2 = min(by_l2, key=lambda one: held_out_loss(by_l2[one], rows))
    start, again = by_l2[l2], 2 * N_ITERATIONS
    plain = trained(rows, l2, cross_entropy, seed, start=start)
    scaled = trained(rows, l2, cross_entropy, seed, start=plain, n_iterations=0)
    scaled.fit_temperature(*rows.held)
    focal = [
        trained(rows, l2, functools.partial(focal_loss, gamma=gamma), seed, n_iterations=again)
        for gamma in GAMMAS
    ]
    soft = [
        trained(rows, l2, _with_soft_ece(strength), seed, start=start) for strength in STRENGTHS
    ]
    return rows, {
        "cross-entropy": plain,
        "scaling": scaled,
        "learnt T": trained(rows, l2, cross_entropy, seed, learnt=True, n_iterations=again),
        "held-out T": with_held_out_temperature(rows, l2, seed, start),
        "focal": best(focal),
        "soft ECE": best(soft),
    }


def _with_soft_ece(strength: float) -> Any:
    return lambda scores, y: cross_entropy(scores, y) + strength * soft_calibration_error(scores, y)


def run(name: str, _: str, model: str, seed: int, data: Path) -> list[float]:
    rows, made = heads(name, seed, data)
    with torch.no_grad():
        P = torch.softmax(made[model](rows.test[0]).double(), dim=1).numpy()
    y = rows.test[1].numpy()
    accuracy = float(np.mean(P.argmax(axis=1) == y))
    return [negative_log_likelihood(P, y), expected_calibration_error(P, y), accuracy]


def main() -> None:
    options = arguments(__doc__, 3, TABLES)
    torch.set_num_threads(1)
    path = RESULTS / "calibration.csv"
    if not options.report:
        wanted = every_run(options, options.tables.split(","), MODELS)
        measure(path, FIGURES, wanted, functools.partial(run, data=options.data))
    about = "\n\n".join(__doc__.split("\n\n")[2:])
    page(path, "Calibration-aware training", FIGURES, {"accuracy"}, about)


if __name__ == "__main__":
    main()
