"""Displays: the facts they hold are the model's, and drawing them changes nothing else."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from dataclasses import FrozenInstanceError

import matplotlib as mpl
import numpy as np
import pytest
from places import ROOT

mpl.use("Agg")

import matplotlib.pyplot as plt
from hypothesis import given
from hypothesis import strategies as st
from making import classifier
from shapes import planes_per_class, random_planes, seeds

from geomix import GeometricMixture
from geomix.core.calibration import expected_calibration_error, reliability_curve
from geomix.core.feature_map import FeatureMap
from geomix.core.lifts import IdentityLift, Standardize
from geomix.explain.diagnostics import plane_usage
from geomix.plots import (
    HistoryDisplay,
    RegionDisplay,
    ReliabilityDisplay,
    ResponsibilityDisplay,
    UsageDisplay,
)
from geomix.plots.facets import SHORTEST_PIECE, facets_of
from geomix.plots.grid import Grid, grid_around
from geomix.training.history import History, Record

DEMO = ROOT / "examples" / "demo.py"


def random_model(seed, per_class, n_columns=2):
    """A model with a linear lift and random planes over standardised columns of odd scales."""
    rng = np.random.default_rng(seed)
    mean, scale = rng.normal(0, 5, n_columns), rng.uniform(0.01, 100, n_columns)
    return GeometricMixture(
        classes=np.array([f"class {c}" for c in range(len(per_class))]),
        columns=tuple(f"column {j}" for j in range(n_columns)),
        feature_map=FeatureMap(
            Standardize(np.arange(n_columns), mean, scale, None, n_columns),
            IdentityLift(n_columns),
        ),
        planes=random_planes(rng, per_class, n_columns, size=3.0),
        sharpness=6.0,
        temperature=0.7,
    )


def rows_for(model, seed=0, n_rows=200):
    """Rows that the model's columns could hold, labelled by chance."""
    rng = np.random.default_rng(seed)
    X = model.standardize.mean + model.standardize.scale * rng.normal(
        size=(n_rows, model.n_features)
    )
    return X, rng.choice(model.classes, n_rows)


@pytest.fixture(scope="module")
def fitted():
    """A fit that kept its held-out losses."""
    X, y = rows_for(random_model(3, [2, 1]), n_rows=300)
    y = np.where(X[:, 0] > X[:, 0].mean(), "right", "left")
    return classifier(lift="linear", refit=False, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def fourier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (np.hypot(*X.T) > 1.0).astype(int)
    settings = {"lift": "fourier", "gamma": 1.0, "l2": 1e-4, "n_frequencies": 16, "max_iter": 20}
    return classifier(**settings, random_state=0).fit(X, y).model_, X, y


# --- regions and facets ---


@pytest.mark.parametrize("per_class", [[1, 1], [3, 2], [2, 4, 1]])
def test_the_map_of_regions_is_what_the_model_says_at_its_points(per_class):
    model = random_model(1, per_class)
    X, y = rows_for(model)
    display = RegionDisplay.from_model(model, X, y, resolution=40)
    points = display.grid.points
    winner = display.class_scores.argmax(axis=2).ravel()
    assert (model.classes[winner] == model.predict(points)).all()
    assert np.allclose(
        display.posterior.reshape(-1, len(per_class)), model.predict_proba(points), atol=1e-14
    )
    A = display.own_responsibility
    assert (model.planes.class_of[A.argmax(axis=2)].ravel() == winner).all()
    assert np.allclose(A.sum(axis=2), 1.0)


def test_the_window_holds_every_row_and_images_line_up_with_their_points():
    X = np.array([[0.0, 10.0], [4.0, 30.0]])
    grid = grid_around(X, 5)
    assert (grid.low < X.min(axis=0)).all()
    assert (grid.high > X.max(axis=0)).all()
    assert grid.points[7].tolist() == [grid.xs[2], grid.ys[1]]
    assert grid.as_map(grid.points)[1, 2].tolist() == [grid.xs[2], grid.ys[1]]
    left, right, _, _ = grid.extent
    assert left + (right - left) / 10 == pytest.approx(grid.xs[0])  # centre of the first pixel


def test_a_single_row_has_a_window_around_it():
    grid = grid_around(np.array([[3.0, 3.0]]), 3)
    assert grid.points[4].tolist() == [3.0, 3.0]
    assert (grid.high > grid.low).all()


def test_a_name_stands_in_the_middle_of_its_region():
    grid = Grid(np.arange(9.0), np.arange(9.0))
    region = np.zeros((9, 9), dtype=bool)
    region[1:6, 2:7] = True
    assert grid.deepest_point(region) == (4.0, 3.0)


@given(seeds, planes_per_class)
def test_two_planes_are_equal_and_highest_along_their_facet(seed, per_class):
    model = random_model(seed, per_class)
    X, _ = rows_for(model, seed % 1000)
    low, high = X.min(axis=0), X.max(axis=0)
    for facet in facets_of(model, low, high):
        share = np.linspace(0.0, 1.0, 7)[:, None]
        on_line = model.plane_scores((1 - share) * facet.line[0] + share * facet.line[1])
        on_piece = model.plane_scores((1 - share) * facet.piece[0] + share * facet.piece[1])
        size = np.abs(on_line).max()
        assert np.allclose(on_line[:, facet.first], on_line[:, facet.second], atol=1e-9 * size)
        assert (on_piece[:, facet.first] >= on_piece.max(axis=1) - 1e-9 * size).all()
        assert model.planes.class_of[facet.first] != model.planes.class_of[facet.second]
        edge = np.isclose(facet.line, low, atol=1e-9 * (high - low)) | np.isclose(
            facet.line, high, atol=1e-9 * (high - low)
        )
        assert edge.any(axis=1).all()


@given(seeds, st.lists(st.integers(1, 3), min_size=2, max_size=3))
def test_wherever_the_highest_plane_changes_class_there_is_a_facet(seed, per_class):
    model = random_model(seed, per_class)
    grid = grid_around(rows_for(model)[0], 60)
    facets = facets_of(model, grid.low, grid.high)
    top = grid.as_map(model.plane_scores(grid.points)).argmax(axis=2)
    left, right = top[:, :-1].ravel(), top[:, 1:].ravel()
    class_of = model.planes.class_of
    across = {
        (int(min(pair)), int(max(pair)))
        for pair in zip(left, right, strict=True)
        if class_of[pair[0]] != class_of[pair[1]]
    }
    # A step of the grid can jump over a thin region, and so over two facets at once: pairs that
    # really meet do so in several steps of a row-by-row walk.
    steps = [(int(min(p)), int(max(p))) for p in zip(left, right, strict=True)]
    met = {pair for pair in across if steps.count(pair) >= 6}
    assert met <= {(facet.first, facet.second) for facet in facets}


def test_two_planes_make_one_facet_where_logistic_regression_has_its_line():
    planes = random_model(0, [1, 1]).planes
    model = GeometricMixture(
        np.array([0, 1]),
        ("a", "b"),
        FeatureMap(Standardize(np.arange(2), np.zeros(2), np.ones(2), None, 2), IdentityLift(2)),
        type(planes)(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.5]), planes.class_start),
        sharpness=6.0,
    )
    (facet,) = facets_of(model, np.zeros(2), np.ones(2))
    assert np.allclose(facet.line[:, 0], facet.line[:, 1] + 0.5)  # x = y + 1/2
    assert np.allclose(np.sort(facet.line[:, 0]), [0.5, 1.0])
    assert np.allclose(facet.piece, facet.line)
    assert np.linalg.norm(np.diff(facet.piece, axis=0)) > SHORTEST_PIECE


def test_equal_planes_and_curved_lifts_have_no_facets(fourier):
    model = random_model(0, [1, 1])
    same = type(model.planes)(np.ones((2, 2)), np.zeros(2), model.planes.class_start)
    assert facets_of(model.__class__(**{**vars(model), "planes": same}), *np.eye(2)) == ()
    assert RegionDisplay.from_model(*fourier, resolution=10).facets == ()


# --- the other facts ---


def test_the_map_of_responsibilities_is_the_models(fourier):
    model, X, y = fourier
    display = ResponsibilityDisplay.from_model(model, X, y, label=1, resolution=20)
    own = model.planes.class_of == 1
    expected = model.responsibilities(display.grid.points)[:, own]
    assert (display.responsibility.reshape(expected.shape) == expected).all()
    assert np.allclose(display.responsibility.sum(axis=2), 1.0)
    assert (display.points == X[y == 1]).all()


def test_bars_fill_each_class_and_are_as_long_as_the_usage():
    model = random_model(2, [3, 1, 2])
    X, y = rows_for(model)
    display = UsageDisplay.from_model(model, X, y).plot()
    assert np.allclose([shares.sum() for shares in display.shares], 1.0)
    usage = plane_usage(model, X, y)
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert np.allclose(widths, usage[usage > 0.0])


def test_planes_and_classes_without_rows_are_named():
    model = random_model(2, [3, 2])
    X, _ = rows_for(model, n_rows=1)
    display = UsageDisplay.from_model(model, X, ["class 0"]).plot()
    texts = [text.get_text() for text in display.ax_.texts]
    assert "2 unused" in texts
    assert "no rows" in texts


def test_the_legend_tells_the_calibration_error_before_and_after():
    model = random_model(4, [2, 2])
    X, y = rows_for(model)
    codes = np.searchsorted(model.classes, y)
    display = ReliabilityDisplay.from_model(model, X, y, before=True).plot()
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    for line, one in zip(legend, (model.with_temperature(1.0), model), strict=False):
        assert line.endswith(f"ECE {expected_calibration_error(one.predict_proba(X), codes):.3f}")
    assert "T = 0.70" in legend[1]


def test_shares_of_bins_are_drawn_as_they_are():
    model = random_model(4, [2, 2])
    X, y = rows_for(model)
    display = ReliabilityDisplay.from_model(model, X, y, n_bins=7).plot()
    (curve,) = display.curves.values()
    drawn = display.share_ax_.patches[0].get_data()
    assert (drawn.values == curve.share).all()
    assert curve.share.sum() == pytest.approx(1.0)
    assert len(curve.share) == 7


def test_calibrated_models_stay_in_the_range_of_chance_nine_times_of_ten(rng):
    P = np.column_stack([top := rng.uniform(0.5, 1.0, 3000), 1.0 - top])
    inside = []
    for _ in range(100):
        y = (rng.random(len(P)) > top).astype(int)
        curve = reliability_curve(P, y)
        least, most = ReliabilityDisplay({"": curve}, n_rows=len(P)).chance
        filled = curve.share > 0.0
        inside.extend((least <= curve.accuracy)[filled] & (curve.accuracy <= most)[filled])
    assert 0.88 < np.mean(inside) < 0.96  # steps of a discrete range make it a little wide


def test_weight_two_is_row_twice_in_the_curve():
    model = random_model(4, [2, 2])
    X, y = rows_for(model)
    weight = np.where(np.arange(len(y)) < 50, 2.0, 1.0)
    weighted = ReliabilityDisplay.from_model(model, X, y, sample_weight=weight)
    twice = ReliabilityDisplay.from_model(
        model, np.vstack([X, X[:50]]), np.concatenate([y, y[:50]])
    )
    (ours,), (theirs,) = weighted.curves.values(), twice.curves.values()
    assert np.allclose(ours.accuracy, theirs.accuracy, equal_nan=True)


def test_history_is_read_record_by_record(fitted):
    records = fitted.history_.records
    display = HistoryDisplay.from_history(fitted.history_).plot()
    assert display.loss.tolist() == [record.loss for record in records]
    assert display.sharpness.tolist() == [record.sharpness for record in records]
    assert display.usage.tolist() == [list(record.usage) for record in records]
    measured = {one.iteration: one.valid_loss for one in records if one.valid_loss is not None}
    assert display.best_iteration == min(measured, key=measured.get)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels[-1] == f"lowest at {display.best_iteration}"


def test_history_without_held_out_rows_shows_the_training_loss_alone():
    history = History(records=[Record("fit", 1, 3.0, 0.5), Record("fit", 2, 6.0, 0.4)])
    display = HistoryDisplay.from_history(history).plot()
    assert display.best_iteration is None
    assert len(display.ax_.lines) == 1


# --- drawing ---


def displays_of(model, X, y, history):
    regions = RegionDisplay.from_model(model, X, y, resolution=30)
    reliability = ReliabilityDisplay.from_model(model, X, y, before=True)
    return {
        "regions": regions.plot,
        "regions by plane": lambda ax=None: regions.plot(ax, by_plane=True, lines=True),
        "regions bare": lambda ax=None: regions.plot(ax, points=False, lines=False),
        "responsibility": ResponsibilityDisplay.from_model(model, X, y, y[0], resolution=30).plot,
        "reliability": reliability.plot,
        "usage": UsageDisplay.from_model(model, X, y).plot,
        "history": HistoryDisplay.from_history(history).plot,
    }


def test_every_display_draws_on_its_own_and_leaves_pyplot_alone(fitted, tmp_path):
    X, y = rows_for(fitted.model_)
    settings, figures = dict(mpl.rcParams), plt.get_fignums()
    for name, plot in displays_of(fitted.model_, X, y, fitted.history_).items():
        display = plot()
        display.figure_.savefig(tmp_path / f"{name}.png")  # warnings are errors here
        assert display._repr_png_().startswith(b"\x89PNG")
    assert plt.get_fignums() == figures
    assert dict(mpl.rcParams) == settings


def test_every_display_draws_where_it_is_told_to(fitted):
    X, y = rows_for(fitted.model_)
    for plot in displays_of(fitted.model_, X, y, fitted.history_).values():
        figure, (_, ax) = plt.subplots(1, 2)
        display = plot(ax)
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert display._repr_png_() is None  # pyplot shows its figures itself
        figure.canvas.draw()
        plt.close(figure)


def test_strips_find_room_below_free_axes(fitted):
    figure = plt.figure()
    ax = figure.add_axes((0.1, 0.1, 0.8, 0.8))
    strip = HistoryDisplay.from_history(fitted.history_).plot(ax).sharpness_ax_
    assert strip.get_position().y0 == pytest.approx(0.1)
    assert strip.get_position().y1 < ax.get_position().y0
    plt.close(figure)


@pytest.mark.parametrize("per_class", [[1, 1], [1] * 12, [5, 1, 3]])
def test_any_number_of_classes_and_planes_can_be_drawn(per_class):
    model = random_model(5, per_class)
    X, y = rows_for(model, n_rows=300)
    history = History(records=[Record("fit", 1, 3.0, 0.5)])
    for plot in displays_of(model, X, y, history).values():
        plot().figure_.canvas.draw()


def test_displays_are_frozen_and_plot_adds_the_axes_to_a_copy():
    model = random_model(2, [2, 2])
    display = UsageDisplay.from_model(model, *rows_for(model))
    plotted = display.plot()
    assert display.ax_ is None
    assert display._repr_png_() is None
    assert plotted.shares is display.shares
    with pytest.raises(FrozenInstanceError):
        plotted.ax_ = None


# --- what cannot be drawn ---


@pytest.mark.parametrize("display", [RegionDisplay, ResponsibilityDisplay])
def test_a_map_needs_a_model_of_two_columns(display):
    model = random_model(0, [1, 1], n_columns=3)
    label = ["class 0"] if display is ResponsibilityDisplay else []
    with pytest.raises(ValueError, match=f"{display.__name__} draws a map of two columns.*has 3"):
        display.from_model(model, *rows_for(model), *label)


def test_an_estimator_is_pointed_to_its_model(fitted):
    for display in (RegionDisplay, ReliabilityDisplay, UsageDisplay):
        with pytest.raises(TypeError, match="expected a GeometricMixture, which is the model_"):
            display.from_model(fitted, np.zeros((1, 2)), ["left"])


def test_rows_and_labels_are_checked_at_the_door():
    model = random_model(0, [2, 1])
    X, y = rows_for(model)
    broken = X.copy()
    broken[3, 1] = np.nan
    for rows, labels, message in [
        (X, y[:-1], r"X of shape \(200, 2\) and y of shape \(199,\)"),
        (X[:0], y[:0], "at least one row"),
        (broken, y, "NaN or infinity"),
        (X, np.where(y == "class 0", "class 7", y), "label.*class 7"),
    ]:
        for display in (RegionDisplay, ReliabilityDisplay, UsageDisplay):
            with pytest.raises(ValueError, match=message):
                display.from_model(model, rows, labels)
    with pytest.raises(ValueError, match="label holds the label 'class 7'"):
        ResponsibilityDisplay.from_model(model, X, y, "class 7")
    with pytest.raises(ValueError, match="Got resolution=1"):
        RegionDisplay.from_model(model, X, y, resolution=1)
    with pytest.raises(ValueError, match="sample_weight"):
        ReliabilityDisplay.from_model(model, X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="no records"):
        HistoryDisplay.from_history(History())


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("geomix.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'geomix\[plots\]'"):
        importlib.import_module("geomix.plots")


def test_geomix_itself_does_not_load_matplotlib():
    code = "import geomix, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the demo ---


def run_demo(monkeypatch, output):
    monkeypatch.setattr(sys, "argv", ["demo.py", "--output", str(output)])
    runpy.run_path(str(DEMO), run_name="__main__")


def test_the_demo_reports_and_writes_the_pictures_it_lists(monkeypatch, tmp_path, capsys):
    run_demo(monkeypatch, tmp_path / "new" / "folder")
    report = capsys.readouterr().out
    for word in ("accuracy", "log-loss", "ECE", "random forest", "Chosen: ", "plane 1"):
        assert word in report
    pictures = sorted(str(path) for path in (tmp_path / "new" / "folder").glob("*.png"))
    assert len(pictures) == 6
    assert all(picture in report for picture in pictures)


def test_the_demo_says_when_it_cannot_write(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"Cannot make the folder .*file: File exists"):
        run_demo(monkeypatch, tmp_path / "file")


def test_a_model_has_no_history_to_draw(rng):
    X = rng.standard_normal((60, 2))
    clf = classifier(n_planes=1, lift="linear", l2=1e-3).fit(X, X[:, 0] > 0.0)
    with pytest.raises(TypeError, match="keeps no history"):
        HistoryDisplay.from_estimator(clf.model_)
