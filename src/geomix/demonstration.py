"""A first look at geomix: what it predicts, how far to trust it, and how to read it.

    geomix demo --output demo

Trains on two tables that come with scikit-learn, prints a report on rows that the models have
not seen, and writes pictures to the output folder.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from geomix import GeometricMixture, GeometricMixtureClassifier, Recipe
from geomix.core.calibration import expected_calibration_error, negative_log_likelihood
from geomix.explain.diagnostics import plane_usage, top_columns
from geomix.explain.plane_names import plane_name
from geomix.plots import (
    HistoryDisplay,
    RegionDisplay,
    ReliabilityDisplay,
    ResponsibilityDisplay,
    UsageDisplay,
)

TEST_SHARE = 0.4
BAR_WIDTH = 20


@dataclass(frozen=True, eq=False)
class Table:
    """Training rows and test rows."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    columns: tuple[str, ...]


def run(output: Any, seed: int = 0) -> None:
    """Print the report, and write the pictures to the folder ``output``."""
    folder = writable_folder(Path(output))
    cancer = breast_cancer(seed)
    started = time.perf_counter()
    fitted = GeometricMixtureClassifier(lift="linear", random_state=seed).fit(cancer.X, cancer.y)
    seconds = time.perf_counter() - started
    model = replace(fitted.model_, columns=cancer.columns)
    print_opening(cancer, seconds)
    print_quality(model, cancer, seed)
    print_rivals(model, cancer, seed)
    print_planes_to_read(model, cancer)
    print_choice(cancer, seed)

    digits, true_digits = even_and_odd_digits(seed)
    union = linear_model(digits, seed, n_planes=5)
    print_union(union, digits, true_digits, seed)

    print_files(write_pictures(folder, model, cancer, union, digits, seed))


# --- the data, and where the pictures go ---


def writable_folder(folder: Path) -> Path:
    """Make the folder before the work starts."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "Permission denied", str(folder))
    return folder


def breast_cancer(seed: int) -> Table:
    data = load_breast_cancer()
    y = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(
        data.data, y, test_size=TEST_SHARE, stratify=y, random_state=seed
    )
    return Table(X, y, X_test, y_test, tuple(data.feature_names.tolist()))


def even_and_odd_digits(seed: int) -> tuple[Table, Any]:
    """Handwritten digits; the label is only whether they are even or odd."""
    data = load_digits()
    X, X_test, digit, true_digits = train_test_split(
        data.data, data.target, test_size=TEST_SHARE, stratify=data.target, random_state=seed
    )
    names = np.array(["even", "odd"])
    table = Table(X, names[digit % 2], X_test, names[true_digits % 2], tuple(data.feature_names))
    return table, true_digits


def linear_model(table: Table, seed: int, n_planes: int) -> GeometricMixture:
    # All 64 columns: without them a single plane would be at a disadvantage.
    classifier = GeometricMixtureClassifier(
        n_planes, lift="linear", l2=1e-4, random_state=seed, advanced=Recipe(pca=None)
    )
    return classifier.fit(table.X, table.y).model_


# --- the report ---


def print_opening(table: Table, seconds: float) -> None:
    heading(f"Breast cancer (wdbc): benign or malignant, by {len(table.columns)} columns")
    print(f"  {len(table.X)} training rows ({seconds:.1f} s)")
    print(f"  {len(table.X_test)} test rows")


def print_quality(model: GeometricMixture, table: Table, seed: int) -> None:
    codes = np.searchsorted(model.classes, table.y_test)
    P = model.predict_proba(table.X_test)
    P_before = model.with_temperature(1.0).predict_proba(table.X_test)
    heading("How good is it?")
    print(f"  accuracy    {accuracy(model, table):.3f}")
    print(f"              before   after temperature scaling (T = {model.temperature:.2f})")
    measures: dict[str, Any] = {
        "log-loss": negative_log_likelihood,
        "ECE": expected_calibration_error,
    }
    for name, measure in measures.items():
        print(f"  {name:10s}  {measure(P_before, codes):.3f}    {measure(P, codes):.3f}")
    rng = np.random.default_rng(seed)
    chance = np.mean([expected_calibration_error(P, drawn(P, rng)) for _ in range(200)])
    print(f"  On {len(codes)} rows even a perfectly calibrated model has an ECE near {chance:.3f}.")


def accuracy(model: GeometricMixture, table: Table) -> float:
    return float(np.mean(model.predict(table.X_test) == table.y_test))


def drawn(P: Any, rng: np.random.Generator) -> Any:
    """Labels drawn from the probabilities ``P``."""
    return (rng.random((len(P), 1)) > P[:, :-1].cumsum(axis=1)).sum(axis=1)


def print_rivals(model: GeometricMixture, table: Table, seed: int) -> None:
    """The same rows for three well-known models, with their defaults."""
    heading("Is it as good as models that nobody can read?")
    print("                                accuracy  log-loss")
    print_line(
        f"geomix, {model.planes.n_planes} planes", accuracy(model, table), log_loss_of(model, table)
    )
    rivals: dict[str, Any] = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "random forest": RandomForestClassifier(random_state=seed),
        "gradient boosting": HistGradientBoostingClassifier(random_state=seed),
    }
    for name, rival in rivals.items():
        rival.fit(table.X, table.y)
        print_line(name, rival.score(table.X_test, table.y_test), log_loss_of(rival, table))


def print_line(name: str, share: float, loss: float) -> None:
    print(f"  {name:30s}{share:.3f}     {loss:.3f}")


def log_loss_of(model: Any, table: Table) -> float:
    return float(log_loss(table.y_test, model.predict_proba(table.X_test)))


def print_choice(table: Table, seed: int) -> None:
    heading("What would a richer model win? The default lets families of models race:")
    history = GeometricMixtureClassifier(random_state=seed).fit(table.X, table.y).history_
    print(textwrap.indent(str(history.choice), "  "))


def print_planes_to_read(model: GeometricMixture, table: Table) -> None:
    """Weights per column; with one plane per class those of the second class are enough."""
    heading("Which columns raise the score of which class?")
    cards = top_columns(model, k=6)
    for card in cards if len(cards) > 2 else cards[1:]:
        print(f"  for {card.label}:")
        for column, weight in zip(card.columns, card.weights, strict=True):
            print(f"    {weight:+.2f}  {column}")
    print("  Weights are per standard deviation of the column; the strongest six are shown.")


def print_union(model: GeometricMixture, table: Table, true_digits: Any, seed: int) -> None:
    alone = linear_model(table, seed, n_planes=1)
    heading("Where one plane is not enough: is a handwritten digit even or odd?")
    print(f"  accuracy with one plane per class   {accuracy(alone, table):.3f}")
    print(f"  accuracy with five                  {accuracy(model, table):.3f}")
    usage = plane_usage(model, table.X_test, table.y_test)
    digits = digits_by_plane(model, table, true_digits)
    for plane in np.flatnonzero(usage):
        code = model.planes.class_of[plane]
        number = plane - model.planes.class_start[code]
        bar = f"{bar_of(usage[plane])} {usage[plane]:4.0%}"
        line = (
            f"  {model.classes[code]:4s}  {plane_name(number)}  {bar}  {digits.get(int(plane), '')}"
        )
        print(line.rstrip())
    print("  Share of the class, and the digits for which the plane is the strongest one.")
    print("  The labels were only even and odd; the planes found the digits.")


def digits_by_plane(model: GeometricMixture, table: Table, true_digits: Any) -> dict[int, str]:
    """Digits by plane: each digit goes to the plane that is strongest on most of its rows."""
    own = table.y_test[:, None] == model.classes[model.planes.class_of]
    winner = np.where(own, model.responsibilities(table.X_test), -1.0).argmax(axis=1)
    found: dict[int, str] = {}
    for digit in range(10):
        plane = int(np.bincount(winner[true_digits == digit]).argmax())
        found[plane] = f"{found[plane]}, {digit}" if plane in found else f"{digit}"
    return found


def print_files(files: list[Path]) -> None:
    heading("Pictures")
    for file in files:
        print(f"  {file}")
    print()


def heading(text: str) -> None:
    print(f"\n{text}")


def bar_of(share: float) -> str:
    full, empty = ("█", "░") if "utf" in (sys.stdout.encoding or "").lower() else ("#", ".")
    n_full = round(share * BAR_WIDTH)
    return full * n_full + empty * (BAR_WIDTH - n_full)


# --- the pictures ---


def write_pictures(
    folder: Path,
    model: GeometricMixture,
    cancer: Table,
    union: GeometricMixture,
    digits: Table,
    seed: int,
) -> list[Path]:
    X, y = make_moons(600, noise=0.22, random_state=seed)
    fitted = GeometricMixtureClassifier(lift="linear", random_state=seed).fit(X, y)
    moons = fitted.model_
    regions = RegionDisplay.from_model(moons, X, y)
    reliability = ReliabilityDisplay.from_model(model, cancer.X_test, cancer.y_test, before=True)
    responsibility = ResponsibilityDisplay.from_model(moons, X, y, label=1)
    usage = UsageDisplay.from_model(union, digits.X_test, digits.y_test)
    pictures: dict[str, tuple[str, Any]] = {
        "moons_regions.png": ("Two moons: the regions of two classes", regions.plot()),
        "moons_planes.png": ("Two moons: which plane answers where", regions.plot(by_plane=True)),
        "moons_responsibility.png": ("Planes of the second moon", responsibility.plot()),
        "moons_history.png": (
            "Two moons: the training",
            HistoryDisplay.from_history(fitted.history_).plot(),
        ),
        "wdbc_reliability.png": ("Breast cancer: can 90 % be trusted?", reliability.plot()),
        "digits_usage.png": ("Even and odd digits: the share of each plane", usage.plot()),
    }
    for name, (title, display) in pictures.items():
        display.figure_.suptitle(title, fontsize=10)
        display.figure_.savefig(folder / name)
    return [folder / name for name in pictures]
