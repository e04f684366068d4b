"""The data sets are what their descriptions say, checked without the code that made them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from geomix.datasets import NAMES, load

SYNTHETIC = ("moons", "circles", "aniso", "spirals")
# Rows of each class, from the papers and web pages that introduced the real sets.
CLASS_COUNTS = {
    "iris": [50, 50, 50],
    "wine": [59, 71, 48],
    "wdbc": [212, 357],
    "digits": [178, 182, 177, 183, 181, 182, 181, 179, 174, 180],
    "moons": [2000, 2000],
    "circles": [2000, 2000],
    "aniso": [1500, 1500, 1500],
    "spirals": [1000, 1000],
}
N_COLUMNS = {"iris": 4, "wine": 13, "wdbc": 30, "digits": 64} | dict.fromkeys(SYNTHETIC, 2)


def accuracy(model, data):
    return cross_val_score(model, data.X, data.y, cv=5).mean()


def test_the_eight_sets_of_the_paper_are_offered():
    assert sorted(NAMES) == sorted(CLASS_COUNTS)


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_class_counts_are_the_papers(name):
    data = load(name)
    assert data.X.shape == (sum(CLASS_COUNTS[name]), N_COLUMNS[name])
    assert np.bincount(data.y).tolist() == CLASS_COUNTS[name]
    assert len(data.columns) == N_COLUMNS[name]
    assert len(data.classes) == len(CLASS_COUNTS[name])
    assert np.isfinite(data.X).all()


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits(name):
    once, again = load(name, random_state=3), load(name, random_state=3)
    assert once.X.tobytes() == again.X.tobytes()
    assert once.y.tobytes() == again.y.tobytes()


@pytest.mark.parametrize("name", SYNTHETIC)
def test_another_seed_draws_other_rows(name):
    first, second = load(name, random_state=0), load(name, random_state=1)
    assert not np.isin(first.X[:, 0], second.X[:, 0]).any()


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(SYNTHETIC)))
def test_a_seed_leaves_real_rows_alone(name):
    assert load(name, random_state=0).X.tobytes() == load(name, random_state=1).X.tobytes()


@pytest.mark.parametrize("name", SYNTHETIC)
def test_rows_of_the_classes_are_mixed(name):
    # A model trained on the first half must meet every class about equally often.
    y = load(name).y
    share = np.bincount(y[: len(y) // 2]) / np.bincount(y)
    assert np.abs(share - 0.5).max() < 0.05


def test_iris_setosa_is_the_class_with_short_petals():
    iris = load("iris")
    petal = iris.X[:, iris.columns.index("petal length (cm)")]
    setosa = iris.y == iris.classes.index("setosa")
    assert petal[setosa].max() < petal[~setosa].min()


def test_malignant_tumours_have_larger_nuclei():
    wdbc = load("wdbc")
    radius = wdbc.X[:, wdbc.columns.index("mean radius")]
    malignant = wdbc.y == wdbc.classes.index("malignant")
    # Means of the two diagnoses in the original data.
    assert radius[malignant].mean() == pytest.approx(17.46, abs=0.01)
    assert radius[~malignant].mean() == pytest.approx(12.15, abs=0.01)


def test_moons_stray_from_their_arcs_by_the_stated_noise():
    moons = load("moons")
    t = np.linspace(0, np.pi, 2001)
    arcs = [
        np.column_stack([np.cos(t), np.sin(t)]),
        np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)]),
    ]
    # Rows are drawn around the middle of their arc, which is where the noise must centre.
    for code, arc in enumerate(arcs):
        rows = moons.X[moons.y == code]
        assert np.allclose(rows.mean(axis=0), arc.mean(axis=0), atol=0.06)
        # Independent noise adds its variance to that of the arc, in every direction.
        added = np.cov(rows.T) - np.cov(arc.T)
        assert np.allclose(added, 0.25**2 * np.eye(2), atol=0.02)


def test_circles_have_the_stated_radii_and_noise():
    circles = load("circles")
    for code, radius in enumerate((1.0, 0.5)):
        r = np.linalg.norm(circles.X[circles.y == code], axis=1)
        # E r^2 = R^2 + 2 sigma^2 for normal noise around a point at distance R.
        assert np.mean(r**2) == pytest.approx(radius**2 + 2 * 0.08**2, abs=0.02)
        assert r.std() == pytest.approx(0.08, abs=0.01)


def test_aniso_classes_have_the_stated_centres_spreads_and_turns():
    aniso = load("aniso")
    for code, (bearing, turn) in enumerate([(90, 15), (210, 45), (330, 75)]):
        rows = aniso.X[aniso.y == code]
        centre = 1.6 * np.array([np.cos(np.deg2rad(bearing)), np.sin(np.deg2rad(bearing))])
        assert np.allclose(rows.mean(axis=0), centre, atol=0.15)
        variances, axes = np.linalg.eigh(np.cov(rows.T))
        assert np.allclose(np.sqrt(variances), [0.8, 2.0], rtol=0.06)
        longest = np.degrees(np.arctan2(axes[1, 1], axes[0, 1])) % 180
        assert longest == pytest.approx(turn, abs=3)


def test_aniso_overlaps_so_that_a_linear_model_gets_about_four_in_five():
    assert 0.75 <= accuracy(LogisticRegression(), load("aniso")) <= 0.83


def test_spirals_lie_exactly_on_their_curve():
    spirals = load("spirals")
    r = np.linalg.norm(spirals.X, axis=1)
    assert r.min() >= 0.5 * np.pi
    assert r.max() <= 5.0 * np.pi
    on_curve = r[:, None] * np.column_stack([np.cos(r), np.sin(r)])
    first = spirals.y == 0
    assert np.allclose(spirals.X[first], on_curve[first], rtol=0, atol=1e-12)
    assert np.allclose(spirals.X[~first], -on_curve[~first], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["circles", "spirals"])
def test_neighbours_solve_what_no_line_can(name):
    data = load(name)
    assert accuracy(LogisticRegression(), data) < 0.6
    assert accuracy(KNeighborsClassifier(5), data) > 0.99


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("moons", ["rows=4000", "noise=0.25"]),
        ("circles", ["rows=4000", "noise=0.08", "factor=0.5"]),
        ("aniso", ["rows=4500", "radius=1.6", "spread=(2.0, 0.8)", "degrees=(15.0, 45.0, 75.0)"]),
        ("spirals", ["rows=2000", "theta=uniform(0.5 pi, 5 pi)", "noise=0"]),
    ],
)
def test_descriptions_state_every_parameter(name, stated):
    description = load(name, random_state=7).description
    assert all(parameter in description for parameter in [*stated, "random_state=7"])


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="Got name='mnist'") as refusal:
        load("mnist")
    assert all(repr(name) in str(refusal.value) for name in NAMES)
    with pytest.raises(ValueError, match=r"Got name=\['iris'\]; expected one of"):
        load(["iris"])


SEEDS = {"none": None, "negative": -1, "half": 1.5, "true": True, "state": np.random.RandomState(0)}


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)
def test_a_seed_that_describes_no_table_is_refused(seed):
    with pytest.raises(ValueError, match=r"Got random_state=.*; expected an integer between"):
        load("aniso", seed)
