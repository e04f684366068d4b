"""Effects of the reading benchmark: coverage of the bands, calm curves, and pictures beside EBM's.

EBM's curves are turned into the same facts as ours, and one function draws both.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown_table import table
from matplotlib.figure import Figure
from reading_tables import TABLES, halves

from geomix import GeometricMixtureClassifier
from geomix.core.calm import direction_changes
from geomix.explain.effect_facts import EXACT, Effect, Effects
from geomix.plots import EffectDisplay

PICTURES = Path(__file__).parent / "results" / "reading"
N_COLUMNS = 4  # columns in a picture
FIRST_SEED = 100  # of the tables for bands; the bands were developed on tables before it
LEVELS = {"a": -1.0, "b": -0.3, "c": 0.3, "d": 1.0}
TRUTH: dict[str, Any] = {
    "wave": lambda x: np.sin(1.5 * x),
    "line": lambda x: 0.7 * x,
    "valley": lambda x: np.abs(x) - 1.0,
    "noise": lambda x: 0.0 * x,
    "level": lambda x: np.array([LEVELS[one] for one in x]),
}


def known_table(n_rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Rows of the additive model TRUTH."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.uniform(-2.0, 2.0, n_rows) for name in TRUTH if name != "level"})
    X["level"] = rng.choice(list(LEVELS), n_rows)
    log_odds = sum(effect(X[name].to_numpy()) for name, effect in TRUTH.items())
    return X, np.where(rng.random(n_rows) < 1.0 / (1.0 + np.exp(-log_odds)), "yes", "no")


def bands(options: Any) -> list[str]:
    """Share of the points of the true curves that lie within the bands."""
    spline = {"lift": "spline", "n_planes": 1, "max_interactions": 0}
    cases: list[tuple[str, Any, int]] = [
        (f"geomix, {kind}", settings, n_rows)
        for n_rows in (500, 2000)
        for kind, settings in {"spline": spline, "default": {}}.items()
    ]
    cases += [("EBM", None, 2000)] if ebm() is not None else []
    body = []
    for kind, settings, n_rows in cases:
        n_tables = options.simulations if settings is not None else options.simulations // 4
        inside: dict[str, list[float]] = {name: [] for name in TRUTH}
        widths = []
        for seed in range(FIRST_SEED, FIRST_SEED + n_tables):
            X, y = known_table(n_rows, seed)
            found = ebm_effects(X, y) if settings is None else our_effects(X, y, settings)
            for one in found:
                share, width = _covered(one, X)
                inside[one.column].append(share)
                widths.append(width)
        shares = [float(np.mean(inside[name])) for name in TRUTH]
        mean = f"{np.mean(shares):.1%}"
        body.append(
            [kind, str(n_rows), str(n_tables), *(f"{one:.0%}" for one in shares), mean,
             f"{np.mean(widths):.2f}"]
        )  # fmt: skip
        print(body[-1], flush=True)
    header = ("model", "rows", "tables", *TRUTH, "all", "mean half-width")
    return [
        "Tables of a known additive model with two classes; 25 points of each curve (all levels), "
        "bands of 90 %. EBM's error bars are one standard deviation of its bagged models "
        "(68 % if they were normal).",
        "",
        *table(header, body),
    ]


def _covered(one: Effect, X: pd.DataFrame) -> tuple[float, float]:
    cells = np.array(one.levels) if one.x is None else np.linspace(-1.9, 1.9, 25)
    effect = TRUTH[one.column]
    true = effect(cells) - effect(X[one.column].to_numpy()).mean()
    assert one.lower is not None
    assert one.upper is not None
    lower, upper = one.lower[0], one.upper[0]
    if one.x is not None:
        lower, upper = np.interp(cells, one.x, lower), np.interp(cells, one.x, upper)
    return float(np.mean((lower <= true) & (true <= upper))), float(np.mean(upper - lower) / 2.0)


def our_effects(X: Any, y: Any, settings: dict[str, Any]) -> Effects:
    return GeometricMixtureClassifier(random_state=0, **settings).fit(X, y).effects(X)


def ebm() -> Any:
    """The class of EBM, or None where InterpretML is not installed."""
    try:
        from interpret.glassbox import ExplainableBoostingClassifier
    except ImportError:
        return None
    return ExplainableBoostingClassifier


def ebm_effects(X: pd.DataFrame, y: Any) -> Effects:
    """EBM's terms of single columns as the facts that we draw."""
    model = ebm()(random_state=0, n_jobs=1).fit(X, y)
    told = model.explain_global()
    classes = tuple(model.classes_.tolist())
    labels = classes[1:] if len(classes) == 2 else classes
    found = [_ebm_effect(told, j, X[name]) for j, name in enumerate(X.columns)]
    return Effects(
        classes, labels, tuple(X.columns), tuple(found), (), np.zeros(len(labels)), EXACT, 0.68,
        "standard deviation of bagged models", len(X),
    )  # fmt: skip


def _ebm_effect(told: Any, j: int, cells: pd.Series) -> Effect:
    facts, importance = told.data(j), told.data()["scores"][j]
    curves = [
        np.atleast_2d(np.asarray(facts[name]).T)
        for name in ("scores", "lower_bounds", "upper_bounds")
    ]
    if len(curves[0]) > 1:  # more classes: against their mean, as ours
        centre = curves[0].mean(axis=0)
        curves = [curve - centre for curve in curves]
    mean_size = np.full(len(curves[0]), importance)
    if told.feature_types[j] != "continuous":
        levels = tuple(map(str, facts["names"]))
        shares = cells.astype(str).value_counts(normalize=True).reindex(levels).fillna(0.0)
        return Effect(
            cells.name, "category", None, levels, *curves, shares=shares.to_numpy(),
            importance=mean_size,
        )  # fmt: skip
    edges = np.asarray(facts["names"], dtype=np.float64)
    x = np.repeat(edges, 2)[1:-1]  # steps
    counts, bins = np.histogram(cells.dropna(), 40)
    in_pieces = np.histogram(cells.dropna(), edges)[0] / len(cells)
    return Effect(
        cells.name, "number", x, None, *(np.repeat(curve, 2, axis=1) for curve in curves),
        shares=np.repeat(in_pieces / 2.0, 2), density=counts / len(cells), density_edges=bins,
        importance=mean_size,
    )  # fmt: skip


def pictures(options: Any) -> list[str]:
    """The same columns of both models, side by side, and how often their curves turn."""
    if ebm() is None:
        return ["InterpretML is not installed here, so EBM was not drawn."]
    PICTURES.mkdir(parents=True, exist_ok=True)
    lines, body = [], []
    for name in TABLES:
        X, _, y, _ = halves(options.data, name)
        clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
        ours, theirs = clf.effects(X), ebm_effects(X, y)
        columns = [one.column for one in ours.strongest(N_COLUMNS)]
        _draw(ours, theirs, columns, PICTURES / f"{name}.png")
        lines += [f"![{name}: geomix and EBM](reading/{name}.png)", ""]
        body.append([name, str(len(X)), *(_turns(found) for found in (ours, theirs))])
        print(body[-1], flush=True)
    page = "\n".join(
        f"<h2>{html.escape(name)}</h2><img src='{html.escape(name)}.png' alt='{html.escape(name)}'>"
        for name in TABLES
    )
    title = "Effects of geomix and of EBM, side by side"
    style = "body{font-family:sans-serif;max-width:1100px;margin:auto}img{width:100%}"
    (PICTURES / "index.html").write_text(
        f"<!doctype html><meta charset='utf-8'><title>{title}</title><style>{style}</style>"
        f"<h1>{title}</h1>\n{page}\n"
    )
    header = ("table", "training rows", "geomix: turns per curve", "EBM: turns per curve")
    return [
        "Default settings of both, the same training rows, drawn by the same function "
        "(all of them: `reading/index.html`). Bands are 90 % for geomix and one standard deviation "
        "of the bagged models for EBM. A turn is a change between rising and falling; the mean is "
        "over columns of numbers.",
        "",
        *table(header, body),
        "",
        *lines,
    ]


def _turns(found: Effects) -> str:
    counts = [
        direction_changes(curve) for one in found if one.x is not None for curve in one.values
    ]
    return f"{np.mean(counts):.1f}" if counts else "no numbers"


def _draw(ours: Effects, theirs: Effects, columns: list[str], path: Path) -> None:
    figure = Figure(figsize=(13.5, 7.6), dpi=80, layout="constrained")
    for part, name, found in zip(
        figure.subfigures(1, 2), ("geomix", "EBM"), (ours, theirs), strict=True
    ):
        display = EffectDisplay.from_effects(found, columns=columns)
        display.plot(part.subplots(), n_columns=2)
        part.suptitle(f"{name}: {part.get_suptitle()}", fontsize=11, x=0.01, ha="left")
    figure.savefig(path)
