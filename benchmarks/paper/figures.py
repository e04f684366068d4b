"""The paper's figures as PNG and SVG, drawn from models of the first seed (the calibration of wdbc
and the ROC curves of iris: of ten).

Each entry of ``FIGURES`` names the data set it needs; a figure is a function that answers with a
matplotlib figure. Maps show geomix with ``lift="linear"``, whose planes are lines one can draw.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.metrics import auc, roc_curve
from sklearn.preprocessing import StandardScaler

from geomix import GeometricMixture, GeometricMixtureClassifier
from geomix.core.calibration import reliability_curve
from geomix.plots import RegionDisplay, ReliabilityDisplay, ResponsibilityDisplay, look
from paper import glass_figure
from paper.data import Split, load, split_rows
from paper.diagram import draw_diagram

SEED = 0
POOLED_SEEDS = 10  # of sets with few test rows
# The planes of a class that surround another one: with three, the boundary is a triangle.
PLANES_OF_A_RING = 6
DOTS_PER_INCH = 130


@dataclass(frozen=True, eq=False)
class Fit:
    model: GeometricMixture
    split: Split


@cache
def linear(dataset: str, seed: int = SEED) -> Fit:
    split = split_of(dataset, seed)
    clf = GeometricMixtureClassifier(lift="linear", random_state=seed)
    return Fit(clf.fit(split.X_learn, split.y_learn).model_, split)


@cache
def ring(dataset: str) -> Fit:
    """The linear model with several planes for the outer class and one for the inner one."""
    split = split_of(dataset, SEED)
    planes = {0: PLANES_OF_A_RING, 1: 1}
    clf = GeometricMixtureClassifier(planes, lift="linear", random_state=SEED)
    return Fit(clf.fit(split.X_learn, split.y_learn).model_, split)


@cache
def recipe(dataset: str, seed: int = SEED) -> Fit:
    split = split_of(dataset, seed)
    clf = GeometricMixtureClassifier.paper(random_state=seed)
    clf.fit(split.X_train, split.y_train, X_val=split.X_valid, y_val=split.y_valid)
    return Fit(clf.model_, split)


def split_of(dataset: str, seed: int) -> Split:
    data = load(dataset)
    return split_rows(data.X, data.y, seed)


def panels(n: int, width: float = 4.5, height: float = 3.9, **options: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width * n, height), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, n, **options))


# --- moons ---


def moons_decision() -> Figure:
    """Left: decision boundary on test data. Right: average responsibilities per class."""
    fit = linear("moons")
    figure, (left, right) = panels(2)
    regions = RegionDisplay.from_model(fit.model, fit.split.X_test, fit.split.y_test)
    regions.plot(left, lines=False)
    draw_responsibilities(right, fit)
    return figure


def draw_responsibilities(ax: Any, fit: Fit) -> None:
    """Mean responsibility of each plane over the test rows of its own class."""
    A, planes = fit.model.responsibilities(fit.split.X_test), fit.model.planes
    ticks, names = [], []
    for code in range(planes.n_classes):
        first, end = planes.class_start[code : code + 2]
        means = A[fit.split.y_test == code, first:end].mean(axis=0)
        x = np.arange(first, end) + code * 0.7
        bars = ax.bar(x, means, 0.8, color=look.plane_shades(code, end - first))
        ax.bar_label(bars, [look.percent(mean) for mean in means], fontsize=8, color=look.INK)
        ticks.extend(x)
        names.extend(f"plane {plane}" for plane in range(1, end - first + 1))
        ax.text(
            x.mean(),
            1.02,
            f"class {fit.model.classes[code]}",
            ha="center",
            fontsize=9,
            color=look.class_color(code),
            transform=ax.get_xaxis_transform(),
        )
    rotation = 0 if len(ticks) <= 6 else 60
    ax.set_xticks(ticks, names, rotation=rotation, fontsize=8)
    ax.set(ylabel="mean responsibility", ylim=(0.0, None))
    ax.yaxis.set_major_formatter(look.percent)
    look.quiet_frame(ax)


def moons_union() -> Figure:
    """Per class: its region as a union of its planes' regions, and which plane answers where."""
    fit = linear("moons")
    figure = Figure(figsize=(9.0, 7.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    regions = RegionDisplay.from_model(fit.model, fit.split.X_test, fit.split.y_test)
    for code, (left, right) in enumerate(axes):
        draw_union(left, regions, code)
        ResponsibilityDisplay.from_model(
            fit.model, fit.split.X_test, fit.split.y_test, fit.model.classes[code]
        ).plot(right, points=False)
        left.set_title(f"class {code}: union of its planes' regions", fontsize=9, loc="left")
        right.set_title(f"class {code}: the plane that answers", fontsize=9, loc="left")
        right.set_ylabel("")
        if code == 0:
            left.set_xlabel("")
            right.set_xlabel("")
    return figure


def draw_union(ax: Any, regions: RegionDisplay, code: int) -> None:
    """The part of the map that the class wins, cut into the parts that its planes win."""
    from geomix.plots.maps import draw_points, draw_shades, frame_map

    own = regions.plane_class == code
    plane = regions.responsibility[..., own].argmax(axis=2)
    won = regions.class_scores.argmax(axis=2) == code
    shades = look.plane_shades(code, int(own.sum()))
    draw_shades(ax, regions.grid, shades[plane], won.astype(float))
    rivals = np.delete(regions.class_scores, code, axis=2).max(axis=2)
    lead = regions.class_scores[..., code] - rivals
    ax.contour(regions.grid.xs, regions.grid.ys, lead, [0.0], colors=look.INK, linewidths=1.2)
    draw_points(ax, regions.points[regions.codes == code], code, f"class {code}")
    frame_map(ax, regions.grid, regions.columns)


# --- planes on all maps ---


def plane_overlays() -> Figure:
    """The lines along which planes of two classes meet, over the regions that they make."""
    figure = Figure(figsize=(13.2, 4.3), layout="constrained")
    for ax, name in zip(figure.subplots(1, 3), ("moons", "circles", "aniso"), strict=True):
        fit = ring(name) if name == "circles" else linear(name)
        RegionDisplay.from_model(fit.model, fit.split.X_test, fit.split.y_test).plot(ax, lines=True)
        planes = "+".join(str(count) for count in fit.model.planes.per_class)
        ax.set_xlabel(f"{name}: {planes} planes")
    return figure


def spirals_map() -> Figure:
    """Left: the regions of the recipe's Fourier planes. Right: which plane of class 0 answers."""
    fit = recipe("spirals")
    figure, (left, right) = panels(2)
    regions = RegionDisplay.from_model(fit.model, fit.split.X_test, fit.split.y_test)
    regions.plot(left, lines=False)
    ResponsibilityDisplay.from_model(
        fit.model, fit.split.X_test, fit.split.y_test, fit.model.classes[0]
    ).plot(right)
    return figure


# --- calibration, projection, ROC ---


def wdbc_reliability() -> Figure:
    """Before and after temperature scaling, the recipe and our defaults' linear model; the test
    rows of all seeds together: those of one seed are 114."""
    figure, axes = panels(2, height=4.8)
    for ax, (title, fit) in zip(
        axes, {"GMC recipe": recipe, "geomix linear": linear}.items(), strict=True
    ):
        shown = pooled_reliability([fit("wdbc", seed) for seed in range(POOLED_SEEDS)])
        shown = shown.plot(ax)
        shown.share_ax_.set_xlabel(f"confidence in the predicted class, {title}")
    return figure


def pooled_reliability(fits: list[Fit]) -> ReliabilityDisplay:
    """The test rows of all fits in one curve, without and with temperature scaling."""
    y = np.concatenate([fit.split.y_test for fit in fits])
    before, after = (
        np.concatenate([model.predict_proba(fit.split.X_test) for model, fit in pairs])
        for pairs in (
            [(fit.model.with_temperature(1.0), fit) for fit in fits],
            [(fit.model, fit) for fit in fits],
        )
    )
    curves = {"before scaling": reliability_curve(before, y), "after": reliability_curve(after, y)}
    return ReliabilityDisplay(curves, n_rows=float(len(y)))


def digits_projection() -> Figure:
    """Test rows on the first two principal axes, coloured by prediction; wrong ones outlined."""
    fit = recipe("digits")
    Z = StandardScaler().fit(fit.split.X_learn)
    axes_of = PCA(2, random_state=SEED).fit(Z.transform(fit.split.X_learn))
    points = axes_of.transform(Z.transform(fit.split.X_test))
    predicted = fit.model.predict(fit.split.X_test)
    wrong = predicted != fit.split.y_test
    colors = matplotlib.colormaps["tab10"]
    figure, (ax,) = panels(1, 7.0, 5.4)
    for code in range(10):
        rows = predicted == code
        ax.scatter(
            *points[rows].T, s=20, color=colors(code), alpha=0.75, linewidth=0, label=str(code)
        )
    ax.scatter(
        *points[wrong].T,
        s=75,
        facecolor="none",
        edgecolor=look.INK,
        linewidth=1.3,
        label=f"wrong ({wrong.sum()} of {len(wrong)})",
    )
    for (x, y), truth in zip(points[wrong], fit.split.y_test[wrong], strict=True):
        ax.annotate(str(truth), (x, y), (5, 5), textcoords="offset points", fontsize=7.5)
    ax.set(xlabel="first principal axis", ylabel="second principal axis")
    look.quiet_frame(ax)
    ax.legend(
        title="predicted",
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=8,
        title_fontsize=8,
    )
    return figure


def iris_roc() -> Figure:
    """One curve per class, and the micro-average over all (row, class) pairs; the test rows of all
    seeds together: those of one seed are 30."""
    data, fits = load("iris"), [recipe("iris", seed) for seed in range(POOLED_SEEDS)]
    P = np.concatenate([fit.model.predict_proba(fit.split.X_test) for fit in fits])
    y = np.concatenate([fit.split.y_test for fit in fits])
    truth = y[:, None] == np.arange(P.shape[1])
    figure, axes = panels(P.shape[1] + 1, 3.0, 3.5, sharey=True)
    curves = [(data.classes[code], truth[:, code], P[:, code]) for code in range(P.shape[1])]
    curves.append(("micro-average", truth.ravel(), P.ravel()))
    for place, (ax, (name, right, score)) in enumerate(zip(axes, curves, strict=True)):
        false, true, _ = roc_curve(right, score)
        color = look.INK if place == P.shape[1] else look.class_color(place)
        ax.plot([0, 1], [0, 1], color=look.QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
        ax.plot(false, true, color=color, linewidth=1.8, clip_on=False)
        ax.fill_between(false, true, color=color, alpha=0.08)
        ax.text(0.97, 0.06, f"AUC {auc(false, true):.3f}", ha="right", fontsize=9)
        ax.set_title(name, fontsize=9, loc="left", color=color)
        ax.set(xlabel="false positives", xlim=(-0.02, 1.0), ylim=(0.0, 1.02), aspect="equal")
        look.quiet_frame(ax)
    axes[0].set_ylabel("true positives")
    return figure


@dataclass(frozen=True)
class Drawing:
    """``caption``: what is shown and by which model; ``needs`` are the data sets."""

    draw: Callable[[], Figure]
    caption: str
    needs: tuple[str, ...]


FIGURES = {
    "model": Drawing(
        draw_diagram, "The model: planes, soft-OR in a class, softmax between classes.", ()
    ),
    "moons_decision": Drawing(
        moons_decision,
        "Moons, geomix linear. Left: regions and boundary on test rows. Right: mean responsibility "
        "of each plane over the test rows of its class.",
        ("moons",),
    ),
    "moons_union": Drawing(
        moons_union,
        "Moons, geomix linear. Left: each class as a union of its planes' regions. Right: which "
        "plane of the class answers where.",
        ("moons",),
    ),
    "plane_overlays": Drawing(
        plane_overlays,
        "Lines along which planes of two classes meet (dashed), and the boundary that they make; "
        "geomix linear, test rows. Circles: six planes for the outer class.",
        ("moons", "circles", "aniso"),
    ),
    "spirals_map": Drawing(
        spirals_map,
        "Spirals, GMC recipe. Left: regions and boundary of its Fourier planes, test rows. Right: "
        "which plane of class 0 answers where.",
        ("spirals",),
    ),
    "wdbc_reliability": Drawing(
        wdbc_reliability,
        "wdbc: accuracy against confidence before and after temperature scaling; the test rows of "
        "ten seeds together.",
        ("wdbc",),
    ),
    "digits_projection": Drawing(
        digits_projection,
        "Digits, GMC recipe: test rows on two principal axes, coloured by prediction; wrong ones "
        "are outlined, with their true digit.",
        ("digits",),
    ),
    "adult_explanations": Drawing(
        glass_figure.draw,
        "Adult: the largest terms of geomix, a GAM and an EBM, over all test rows (above) and for "
        "one of them (below). GAM and EBM add up log-odds, geomix the score of the plane that "
        "answered.",
        ("adult",),
    ),
    "iris_roc": Drawing(
        iris_roc, "Iris, GMC recipe: ROC curves, the test rows of ten seeds together.", ("iris",)
    ),
}


def draw(name: str, folder: Path) -> None:
    """Write ``name`` as PNG and SVG, with the same bytes for the same picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": name, "font.size": 9}):
        figure = FIGURES[name].draw()
        (folder / f"{name}.png").write_bytes(as_png(figure))
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def as_png(figure: Figure) -> bytes:
    """PNG with a palette, which is a third of the size and looks the same."""
    from PIL import Image

    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=DOTS_PER_INCH)
    palette = Image.open(full).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    palette.save(small, format="png", optimize=True)
    return small.getvalue()
