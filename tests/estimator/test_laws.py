"""What holds for the whole classifier, from table to probability."""

import numpy as np
import pandas as pd
import pytest
from kernels import SLOW_WITH_NUMPY, fast_with_numpy
from making import classifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from geomix import GeometricMixtureClassifier
from geomix.core.lifts import draw_fourier
from geomix.model import GeometricMixture

pytestmark = pytest.mark.kernel

QUICK = {"lift": "linear", "l2": 1e-4, "n_planes": 2, "max_iter": 60, "random_state": 0}


def quick(**parameters):
    return classifier(**{**QUICK, **parameters})


@pytest.mark.parametrize("name", ["iris", "wine", "wdbc"])
def test_one_plane_per_class_is_multinomial_logistic_regression(name, request):
    X, y = request.getfixturevalue(name)
    l2, beta, delta = 1e-3, 0.5, 0.01
    ours = quick(
        n_planes=1, l2=l2, usage_beta=beta, usage_delta=delta, label_smoothing=0.0,
        solver="lbfgs", tol=1e-10, max_iter=5000, calibrate=False, early_stopping="off",
    ).fit(X, y)  # fmt: skip
    # One plane is always responsible: its usage is one.
    effective = l2 * (1.0 + beta / (1.0 + delta))
    Z = StandardScaler().fit_transform(X)
    binary = len(np.unique(y)) == 2
    C = 1.0 / ((1 if binary else 2) * len(y) * effective)
    theirs = LogisticRegression(C=C, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    theirs.fit(Z, y)
    planes = ours.model_.planes
    weights = planes.weights
    if binary:
        weights = weights[1:] - weights[:1]
        biases = planes.biases[1:] - planes.biases[:1]
    else:
        biases = planes.biases - planes.biases.mean()
    np.testing.assert_allclose(weights, theirs.coef_, atol=1e-4)
    centred = theirs.intercept_ - (0.0 if binary else theirs.intercept_.mean())
    np.testing.assert_allclose(biases, centred, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(Z), atol=1e-5)


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_same_seed_same_bits(wine, solver):
    a = quick(solver=solver).fit(*wine).predict_proba(wine[0])
    b = quick(solver=solver).fit(*wine).predict_proba(wine[0])
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"solver": "adam"},
        {"lift": "fourier"},
        pytest.param({"lift": "auto", "l2": "auto"}, marks=SLOW_WITH_NUMPY),
    ],
)
def test_row_order_changes_no_bit(wine, rng, parameters):
    X, y = wine
    order = rng.permutation(len(y))
    a = quick(**parameters).fit(X, y)
    b = quick(**parameters).fit(X[order], y[order])
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"solver": "adam"},
        pytest.param({"lift": "auto", "l2": "auto", "n_planes": "auto"}, marks=SLOW_WITH_NUMPY),
    ],
)
def test_weight_two_is_row_twice_and_weight_zero_is_no_row(wine, rng, parameters):
    X, y = wine
    weight = rng.integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    a = quick(**parameters).fit(X, y, sample_weight=weight)
    b = quick(**parameters).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-7)


def test_a_common_factor_of_the_weights_does_not_matter(wine, rng):
    X, y = wine
    weight = rng.uniform(0.5, 2.0, len(y))
    a = quick().fit(X, y, sample_weight=weight)
    b = quick().fit(X, y, sample_weight=weight * 2.0**900)
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))
    # 1e300 is no power of two: the weights themselves differ in their last digit.
    c = quick().fit(X, y, sample_weight=weight * 1e300)
    np.testing.assert_allclose(a.predict_proba(X), c.predict_proba(X), rtol=1e-4, atol=1e-6)


def test_renaming_the_classes_permutes_the_columns(wine):
    X, y = wine
    renamed = np.array([2, 0, 1])[y]
    a = quick().fit(X, y).predict_proba(X)
    b = quick().fit(X, renamed).predict_proba(X)
    np.testing.assert_allclose(a, b[:, [2, 0, 1]], atol=1e-5)


@pytest.mark.parametrize("lift", ["linear", "fourier"])
def test_a_constant_column_changes_no_bit(wine, lift):
    X, y = wine
    a = quick(lift=lift).fit(X, y)
    b = quick(lift=lift).fit(np.c_[X[:, :4], np.full(len(y), 7.1), X[:, 4:]], y)
    wider = np.c_[X[:, :4], np.full(len(y), -3.0), X[:, 4:]]
    assert np.array_equal(a.predict_proba(X), b.predict_proba(wider))
    if lift == "linear":
        assert (b.model_.folded.weights[:, 4] == 0.0).all()


@pytest.mark.parametrize("factor", [1e-100, 2.0**40, 1e100])
def test_the_unit_and_zero_of_a_column_do_not_matter(wine, factor):
    X, y = wine
    a = quick().fit(X, y).predict_proba(X)
    moved = (X + 3.0) * factor
    b = quick().fit(moved, y).predict_proba(moved)
    np.testing.assert_allclose(a, b, atol=1e-7)


@pytest.mark.parametrize("lift", fast_with_numpy(["linear", "fourier"], ["linear"]))
def test_a_rows_answer_depends_on_that_row_alone(digits, lift):
    X, y = digits
    clf = quick(lift=lift, max_iter=5, calibrate=False, early_stopping="off").fit(X, y)
    X = X[:300]
    whole = clf.predict_proba(X)
    for size in (1, 2, 3, 7, 64):
        parts = [clf.predict_proba(X[i : i + size]) for i in range(0, 300, size)]
        assert np.array_equal(np.vstack(parts), whole)
    order = np.random.default_rng(0).permutation(300)
    assert np.array_equal(clf.predict_proba(X[order]), whole[order])
    assert np.array_equal(clf.predict_proba(np.asfortranarray(X)), whole)


def test_folded_planes_are_in_the_users_units(wdbc):
    X, y = wdbc
    clf = quick(pca=0.99).fit(X, y)
    folded = clf.model_.folded
    np.testing.assert_allclose(X @ folded.weights.T + folded.biases, clf.plane_scores(X), atol=1e-8)
    assert folded.weights.shape == (clf.n_planes_.sum(), X.shape[1])


def test_probabilities_scores_and_responsibilities_belong_together(wine):
    X, y = wine
    clf = quick(n_planes=3).fit(X, y)
    P, S, Z, A = (
        clf.predict_proba(X),
        clf.decision_function(X),
        clf.plane_scores(X),
        clf.responsibilities(X),
    )
    np.testing.assert_allclose(np.exp(S) / np.exp(S).sum(axis=1, keepdims=True), P, atol=1e-13)
    start, k = clf.model_.planes.class_start, clf.model_.sharpness
    np.testing.assert_allclose(np.add.reduceat(A, start[:-1], axis=1), 1.0)
    pooled = np.log(np.add.reduceat(np.exp(k * Z), start[:-1], axis=1)) / k
    np.testing.assert_allclose(pooled / clf.model_.temperature, S, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(clf.predict_log_proba(X), np.log(P))
    assert np.array_equal(clf.predict(X), clf.classes_[P.argmax(axis=1)])
    two = quick().fit(X[y < 2], y[y < 2])
    odds = two.predict_proba(X)
    log_odds = np.log(odds[:, 1] / odds[:, 0])
    np.testing.assert_allclose(two.decision_function(X), log_odds, rtol=1e-6, atol=1e-9)


def test_the_model_answers_like_the_estimator_and_checks_its_width(wine):
    X, y = wine
    clf = quick().fit(X, y)
    assert isinstance(clf.model_, GeometricMixture)
    assert np.array_equal(clf.model_.predict_proba(X), clf.predict_proba(X))
    assert np.array_equal(clf.model_.predict(X), clf.predict(X))
    assert clf.model_.n_features == 13
    with pytest.raises(ValueError, match=r"\(178, 12\); expected \(n_rows, 13\)"):
        clf.model_.predict_proba(X[:, :12])


def test_a_temperature_keeps_the_answers_and_helps_the_likelihood(digits):
    X, y = digits
    test, labels = X[1::2], y[1::2]
    clf = quick(max_iter=80).fit(X[::2], y[::2])
    plain = clf.model_.with_temperature(1.0)
    assert clf.model_.temperature != 1.0
    assert np.array_equal(plain.predict(test), clf.predict(test))
    after = log_loss(labels, clf.predict_proba(test))
    assert after < log_loss(labels, plain.predict_proba(test))
    assert quick(calibrate=False).fit(X[:300], y[:300]).model_.temperature == 1.0


@SLOW_WITH_NUMPY
def test_the_users_validation_rows_choose_and_calibrate(moons):
    X, y = moons
    rows = {"X": X[:400], "y": y[:400], "X_val": X[400:], "y_val": y[400:]}
    clf = quick(preset="accurate", lift="auto", l2="auto", solver="lbfgs").fit(**rows)
    model = clf.model_
    best = min(t.valid_loss for t in clf.history_.trials)
    chosen = next(t for t in clf.history_.trials if t.chosen)
    assert chosen.valid_loss >= best
    assert {t.lift for t in clf.history_.trials} == {"linear", "spline", "fourier"}
    # Trained on X alone: its column means are those of X, without any row of X_val.
    linear = quick(lift="linear", l2="auto", solver="lbfgs").fit(**rows).model_
    np.testing.assert_allclose(linear.standardize.mean, X[:400].mean(axis=0))
    nll = [log_loss(y[400:], m.predict_proba(X[400:])) for m in (model, model.with_temperature(1))]
    assert nll[0] <= nll[1]


def test_zero_weights_in_validation_are_no_rows(moons):
    X, y = moons
    weight = np.r_[np.ones(100), np.zeros(100)]
    a = quick().fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:], sample_weight_val=weight)
    b = quick().fit(X[:400], y[:400], X_val=X[400:500], y_val=y[400:500])
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


@SLOW_WITH_NUMPY
def test_the_lift_is_chosen_by_held_out_likelihood(rng):
    """Straight classes need no lift, a band with the other class on both sides of it a curve, and a
    chessboard, where no column says anything by itself, more than that, at one plane per class."""
    X = rng.standard_normal((600, 2))
    options = {"lift": "auto", "l2": "auto", "n_planes": 1, "n_frequencies": 64}
    options |= {"preset": "accurate", "max_interactions": 0}
    straight = quick(**options).fit(X, (X[:, 0] + 0.9 * rng.standard_normal(600) > 0).astype(int))
    assert straight.model_.lift.kind == "linear"
    band = quick(**options).fit(X, (np.abs(X[:, 0]) > 0.7).astype(int))
    assert band.model_.lift.kind == "spline"
    chessboard = quick(**options).fit(X, (X[:, 0] * X[:, 1] > 0).astype(int))
    assert chessboard.model_.lift.kind == "fourier"
    assert sum(t.chosen for t in band.history_.trials) == 1


def test_refit_learns_from_all_rows(wine):
    X, y = wine
    all_rows = quick(refit=True).fit(X, y).model_.standardize.mean
    some_rows = quick(refit=False).fit(X, y).model_.standardize.mean
    np.testing.assert_allclose(all_rows, X.mean(axis=0))
    assert not np.allclose(some_rows, X.mean(axis=0), rtol=1e-6)


def test_class_weights_move_the_shares_and_the_correction_moves_them_back(rng):
    X = np.r_[rng.normal(0, 1, (1800, 2)), rng.normal(1, 1, (200, 2))]
    y = np.repeat([0, 1], [1800, 200])
    shares = {
        name: quick(n_planes=1, **options).fit(X, y).predict_proba(X)[:, 1].mean()
        for name, options in {
            "plain": {},
            "balanced": {"class_weight": "balanced"},
            "dict": {"class_weight": {0: 1.0, 1: 9.0}},
            "corrected": {"class_weight": "balanced", "correct_prior": True},
        }.items()
    }
    assert shares["plain"] == pytest.approx(0.1, abs=0.02)
    assert shares["balanced"] > 0.25
    assert shares["dict"] == pytest.approx(shares["balanced"], abs=1e-3)
    assert shares["corrected"] == pytest.approx(0.1, abs=0.02)


def test_class_weight_is_sample_weight(wine):
    X, y = wine
    a = quick(class_weight={0: 1.0, 1: 3.0, 2: 0.5}).fit(X, y)
    b = quick().fit(X, y, sample_weight=np.array([1.0, 3.0, 0.5])[y])
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


def test_class_weight_is_sample_weight_for_rare_levels_too(wine):
    X, y = wine
    # Both levels that occur once are of a heavy class, so they are not rare.
    X = pd.DataFrame(X[:, :3], columns=list("abc")).assign(kind="often")
    X.loc[[0, 1], "kind"] = ["once", "twice"]
    a = quick(class_weight={0: 3.0, 1: 1.0, 2: 1.0}).fit(X, y)
    b = quick().fit(X, y, sample_weight=np.array([3.0, 1.0, 1.0])[y])
    assert a.model_.schema == b.model_.schema
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {"lift": "linear"},
        {"lift": "spline", "n_planes": 1},
        {"lift": "fourier", "n_planes": 1, "l2": 1e-2},
        {"preset": "fast"},
        pytest.param({}, marks=SLOW_WITH_NUMPY),
    ],
    ids=str,
)
def test_the_names_of_levels_do_not_matter(parameters):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((300, 2)), columns=["x", "z"])
    kind, other = rng.integers(0, 6, 300), rng.integers(0, 3, 300)
    slope = np.array([-1.0, 1.0, 0.0, 2.0, -2.0, 0.5])[kind]
    y = (X["x"] + slope * X["z"] + 0.5 * other + rng.normal(0.0, 0.7, 300) > 0.0).to_numpy()
    answers = []
    for names, others in (("abcdef", "uvw"), ("dfaceb", "wuv")):
        table = X.assign(kind=np.array(list(names))[kind], other=np.array(list(others))[other])
        clf = GeometricMixtureClassifier(random_state=0, **parameters).fit(table, y)
        answers.append(clf.predict_proba(table))
    np.testing.assert_allclose(*answers, atol=1e-5)


def test_planes_per_class_can_be_given_by_label(wine):
    X, y = wine
    names = np.array(["x", "y", "z"])[y]
    clf = quick(n_planes={"x": 1, "y": 3, "z": 2}).fit(X, names)
    assert clf.n_planes_.tolist() == [1, 3, 2]
    assert clf.plane_scores(X).shape == (178, 6)


def test_the_papers_recipe_runs_to_the_letter(moons):
    X, y = moons
    clf = GeometricMixtureClassifier.paper(random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.9
    history = clf.history_
    assert history.records[0].sharpness == 3.0
    assert history.records[0].learning_rate == 0.01
    assert {t.l2 for t in history.trials} == {1e-4}
    # The silhouette alone gives the planes: no candidate has any other number of them.
    assert {t.n_planes for t in history.trials} == {clf.n_planes_.sum()}
    assert clf.n_planes_.max() <= 4
    assert GeometricMixtureClassifier.paper(l2=0.5).l2 == 0.5


@SLOW_WITH_NUMPY
def test_the_history_tells_what_happened(iris):
    X, y = iris
    clf = quick(lift="auto").fit(X, y)
    told = clf.history_.to_dict()
    assert len(told["records"]) == clf.n_iter_ == clf.history_.n_iter
    assert told["stopped"] in {"converged", "n_iter_no_change", "max_iter"}
    # k-means, unless it was unstable: then there is a note.
    unstable = any("k-means did not repeat itself" in note for note in told["notes"])
    assert told["init"] == ("logistic" if unstable else "kmeans")
    few = quick().fit(X[::4], y[::4])
    assert "38 distinct rows" in few.history_.notes[0]
    assert few.model_.temperature == 1.0


def test_gradients_through_a_fourier_lift_learn_rings(rng):
    X = rng.standard_normal((400, 2))
    y = ((X**2).sum(axis=1) > 1.4).astype(int)
    assert quick(lift="fourier", n_planes=1, l2=1e-6).fit(X, y).score(X, y) > 0.95
    assert draw_fourier(2, 8, 1.0, True, rng).n_outputs == 16
