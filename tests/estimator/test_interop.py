"""The classifier among its neighbours: scikit-learn's tools, frames, SciPy, pickles, people."""

import io
import pickle
import re
import threading
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from kernels import fast_with_numpy
from making import classifier
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import geomix
from geomix import GeometricMixtureClassifier, InvalidParameterError, Recipe

QUICK = {"lift": "linear", "n_planes": 2, "l2": 1e-4, "max_iter": 30, "random_state": 0}


def quick(**parameters):
    return classifier(**{**QUICK, **parameters})


def frame(X):
    return pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(*load_iris(return_X_y=True))


# --- scikit-learn's tools ---


def test_a_pipeline_ends_in_the_same_answers(iris, fitted):
    X, y = iris
    pipeline = make_pipeline(FunctionTransformer(lambda X: 2.0 * X), quick()).fit(X, y)
    assert np.array_equal(pipeline.predict_proba(X), fitted.predict_proba(X))
    assert pipeline.score(X, y) == fitted.score(X, y)


def test_a_grid_search_finds_the_penalty_that_scores_best(iris):
    X, y = iris
    search = GridSearchCV(quick(), {"l2": [1e-4, 10.0], "n_planes": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_["l2"] == 1e-4
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() > 0.9
    best = quick(**search.best_params_).fit(X, y)
    assert np.array_equal(search.predict_proba(X), best.predict_proba(X))


def test_parameters_of_numpy_types_can_be_searched(iris):
    grid = {"n_planes": np.array([1, 2]), "l2": np.array([1e-3])}
    grid["advanced"] = [Recipe(refit=refit) for refit in np.array([True, False])]
    search = GridSearchCV(quick(max_iter=10), grid, cv=2, error_score="raise").fit(*iris)
    assert len(search.cv_results_["params"]) == 4


def test_cross_validation_is_fits_on_the_folds(iris):
    X, y = iris
    folds = [(np.flatnonzero(np.arange(150) % 3 != k), np.arange(k, 150, 3)) for k in range(3)]
    scores = cross_val_score(quick(), X, y, cv=folds)
    by_hand = [quick().fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]
    assert scores.tolist() == by_hand
    assert min(by_hand) > 0.9
    for method in ("predict_proba", "decision_function", "predict_log_proba"):
        assert cross_val_predict(quick(), X, y, cv=folds, method=method).shape == (150, 3)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_a_calibrator_may_wrap_the_classifier(iris, method):
    X, y = iris
    calibrated = CalibratedClassifierCV(quick(), method=method, cv=3).fit(X, y)
    p = calibrated.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert calibrated.score(X, y) > 0.9
    assert log_loss(y, p) < 0.5 * np.log(3.0)


def test_a_clone_has_the_parameters_and_nothing_learnt(fitted):
    twin = clone(fitted)
    assert twin.get_params() == fitted.get_params()
    assert not hasattr(twin, "model_")
    assert not hasattr(twin, "classes_")


def test_parameters_can_be_read_and_set_and_a_wrong_name_is_refused():
    clf = quick().set_params(l2=0.5, advanced=Recipe(solver="adam"))
    assert clf.get_params()["l2"] == 0.5
    assert clf.get_params()["advanced"].solver == "adam"
    with pytest.raises(ValueError, match="Invalid parameter 'sharpnes' for estimator"):
        clf.set_params(sharpnes=3.0)
    with pytest.raises(InvalidParameterError, match=r"set advanced=Recipe\(sharpness=\.\.\.\)"):
        clf.set_params(sharpness=3.0)


def test_the_estimator_shows_itself_with_what_differs_from_the_defaults():
    assert repr(GeometricMixtureClassifier(l2=0.5)) == "GeometricMixtureClassifier(l2=0.5)"
    assert "GeometricMixtureClassifier" in quick()._repr_html_()


def test_fitting_again_forgets_the_first_data(iris, wine, fitted):
    clf = quick().fit(pd.DataFrame(wine[0]).rename(columns=str), wine[1])
    clf.fit(*iris)
    assert clf.n_features_in_ == 4
    assert not hasattr(clf, "feature_names_in_")
    assert np.array_equal(clf.predict_proba(iris[0]), fitted.predict_proba(iris[0]))


# --- copies on disk and in memory ---


def _through_joblib(clf):
    buffer = io.BytesIO()
    joblib.dump(clf, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


@pytest.mark.parametrize(
    "parameters", [{}, {"lift": "fourier", "n_frequencies": 16}, {"pca": 2}, {"solver": "adam"}]
)
@pytest.mark.parametrize("through", [lambda clf: pickle.loads(pickle.dumps(clf)), _through_joblib])
def test_a_copy_through_pickle_or_joblib_answers_with_the_same_bits(iris, parameters, through):
    X, y = iris
    clf = quick(**parameters).fit(frame(X), np.array(["a", "b", "c"])[y])
    copy = through(clf)
    for method in ("predict_proba", "decision_function", "plane_scores", "responsibilities"):
        assert np.array_equal(getattr(copy, method)(frame(X)), getattr(clf, method)(frame(X)))
    assert copy.predict(frame(X)).tolist() == clf.predict(frame(X)).tolist()
    assert copy.feature_names_in_.tolist() == clf.feature_names_in_.tolist()
    assert copy.history_.to_dict() == clf.history_.to_dict()


def test_an_unfitted_copy_fits_to_the_same_bits(iris, fitted):
    copy = pickle.loads(pickle.dumps(quick()))
    assert np.array_equal(copy.fit(*iris).predict_proba(iris[0]), fitted.predict_proba(iris[0]))


@pytest.mark.kernel
def test_joblib_workers_fit_the_same_bits(iris, fitted):
    X, y = iris
    fits = joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(quick().fit)(X, y) for _ in range(4)
    )
    for clf in fits:
        assert np.array_equal(clf.predict_proba(X), fitted.predict_proba(X))


# --- metadata routing ---


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_an_answer_during_a_fit_is_of_the_old_model_or_of_the_new_one(iris):
    X, y = iris
    labels = [y, np.roll(y, 50)]
    expected = [quick().fit(X, one).predict_proba(X) for one in labels]
    clf = quick().fit(X, y)

    def fit_by_turns():
        for turn in range(20):
            clf.fit(X, labels[turn % 2])

    thread = threading.Thread(target=fit_by_turns)
    thread.start()
    while thread.is_alive():
        found = clf.predict_proba(X)
        assert any(np.array_equal(found, one) for one in expected)
    thread.join()


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_a_pipeline(iris, rng):
    X, y = iris
    weight = rng.integers(0, 3, 150)
    pipeline = make_pipeline(
        FunctionTransformer(), quick().set_fit_request(sample_weight=True)
    ).fit(X, y, sample_weight=weight)
    expected = quick().fit(X, y, sample_weight=weight)
    assert np.array_equal(pipeline.predict_proba(X), expected.predict_proba(X))


@pytest.mark.usefixtures("routing")
def test_validation_rows_are_routed_and_transformed_by_a_pipeline(iris):
    X, y, X_val, y_val = iris[0][::2], iris[1][::2], iris[0][1::2], iris[1][1::2]
    clf = quick().set_fit_request(X_val=True, y_val=True, sample_weight_val=True)
    steps = [("scale", StandardScaler()), ("clf", clf)]
    weight_val = np.linspace(0.5, 2.0, 75)
    pipeline = Pipeline(steps, transform_input=["X_val"])
    pipeline.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weight_val)
    scaler = StandardScaler().fit(X)
    expected = quick().fit(scaler.transform(X), y, None, scaler.transform(X_val), y_val, weight_val)
    assert np.array_equal(
        pipeline.predict_proba(X_val), expected.predict_proba(scaler.transform(X_val))
    )


@pytest.mark.usefixtures("routing")
def test_weights_and_validation_rows_are_routed_through_a_grid_search(iris, rng):
    X, y, X_val, y_val = iris[0][::2], iris[1][::2], iris[0][1::2][:60], iris[1][1::2][:60]
    weight = rng.uniform(0.5, 2.0, 75)
    clf = quick().set_fit_request(sample_weight=True, X_val=True, y_val=True)
    clf.set_score_request(sample_weight=True)
    search = GridSearchCV(clf, {"n_planes": [1, 2]}, cv=2, error_score="raise")
    search.fit(X, y, sample_weight=weight, X_val=X_val, y_val=y_val)
    expected = quick(**search.best_params_).fit(
        X, y, sample_weight=weight, X_val=X_val, y_val=y_val
    )
    assert np.array_equal(search.predict_proba(X), expected.predict_proba(X))


@pytest.mark.usefixtures("routing")
def test_metadata_that_was_not_asked_for_is_refused(iris):
    X, y = iris
    search = GridSearchCV(quick(), {"n_planes": [1]}, cv=2)
    with pytest.raises(
        ValueError, match=r"\[sample_weight\] are passed but are not explicitly set"
    ):
        search.fit(X, y, sample_weight=np.ones(150))


# --- frames ---


@pytest.mark.parametrize(
    "make", [frame, lambda X: pl.DataFrame(X, schema=list(frame(X[:1]).columns))]
)
def test_names_of_columns_are_kept(iris, fitted, make):
    X, y = iris
    clf = quick().fit(make(X), y)
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    assert clf.feature_names_in_.tolist() == names
    assert clf.model_.columns == tuple(names)
    assert clf.n_features_in_ == 4
    assert np.array_equal(clf.predict_proba(make(X)), fitted.predict_proba(X))


def test_a_pandas_model_reads_polars_frames_and_the_other_way_round(iris):
    X, y = iris
    names = list(frame(X).columns)
    by_pandas = quick().fit(frame(X), y)
    by_polars = quick().fit(pl.DataFrame(X, schema=names), y)
    assert np.array_equal(
        by_pandas.predict_proba(pl.DataFrame(X, schema=names)),
        by_polars.predict_proba(frame(X)),
    )


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_reordered_columns_are_refused_and_a_plain_array_warned_of(iris, make):
    X, y = iris
    table = make({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "d": X[:, 3]})
    clf = quick().fit(table, y)
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were"):
        clf.predict(table[["b", "a", "c", "d"]])
    words = "X does not have valid feature names, but GeometricMixtureClassifier was fitted with"
    with pytest.warns(UserWarning, match=words):
        answer = clf.predict(X)
    assert answer.tolist() == clf.predict(table).tolist()


def test_the_index_of_a_frame_does_not_matter(iris, fitted, rng):
    X, y = iris
    index = rng.permutation(150) + 1000
    clf = quick().fit(
        frame(X).set_axis(index), pd.Series(y, index=index), pd.Series(np.ones(150), index=index)
    )
    assert np.array_equal(clf.predict_proba(frame(X)), fitted.predict_proba(X))


# --- labels and numbers ---


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["c", "b", "a"], dtype=object),
        np.array([3, 1, 2], dtype=np.int8),
        np.array([30, -10, 2**40]),
        np.array([1, 2, 3], dtype=np.uint16),
        np.array([0.0, 1.0, 2.0], dtype=np.float32),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(iris, labels):
    X, y = iris
    clf = quick().fit(X, labels[y])
    assert clf.classes_.dtype == labels.dtype
    assert clf.classes_.tolist() == np.sort(labels).tolist()
    assert clf.predict(X).dtype == labels.dtype
    assert clf.score(X, labels[y]) > 0.9


@pytest.mark.parametrize("init", ["kmeans", "logistic", "random", "auto"])
def test_the_names_of_the_classes_do_not_matter_whatever_the_first_planes(iris, init):
    X, y = iris
    names = np.array(["c", "a", "b"])
    a = quick(init=init).fit(X, y).predict_proba(X)
    b = quick(init=init).fit(X, names[y]).predict_proba(X)
    np.testing.assert_allclose(b, a[:, np.argsort(names)], atol=1e-6)


@pytest.mark.parametrize(
    "make", [lambda y: y > 0, lambda y: pd.Series(y > 0), lambda y: (y > 0).tolist()]
)
def test_boolean_labels_stay_boolean(iris, make):
    X, y = iris
    clf = quick().fit(X, make(y))
    assert clf.classes_.dtype == bool
    assert clf.predict(X).dtype == bool
    p = clf.predict_proba(X)
    np.testing.assert_allclose(clf.decision_function(X), np.log(p[:, 1] / p[:, 0]), atol=1e-6)
    assert clf.score(X, make(y)) > 0.9


@pytest.mark.parametrize("make", [pd.Series, pl.Series, list, tuple, pd.Categorical])
def test_labels_may_come_in_any_container(iris, fitted, make):
    X, y = iris
    names = np.array(["a", "b", "c"], dtype=object)[y]
    clf = quick().fit(X, make(names))
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert np.array_equal(clf.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.kernel
def test_float32_rows_are_read_as_the_numbers_they_are(iris):
    X, y = iris
    narrow = X.astype(np.float32)
    a, b = quick().fit(narrow, y), quick().fit(narrow.astype(np.float64), y)
    assert np.array_equal(a.predict_proba(narrow), b.predict_proba(narrow.astype(np.float64)))
    assert a.predict_proba(narrow).dtype == np.float64


# --- sparse rows ---


def _wide_indices(X):
    X = scipy.sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


SPARSE = {
    "csr_matrix": scipy.sparse.csr_matrix,
    "csr_array": scipy.sparse.csr_array,
    "csc_matrix": scipy.sparse.csc_matrix,
    "csc_array": scipy.sparse.csc_array,
    "coo_array": scipy.sparse.coo_array,
    "lil_matrix": scipy.sparse.lil_matrix,
    "dok_array": scipy.sparse.dok_array,
    "int64 indices": _wide_indices,
    "float32": lambda X: scipy.sparse.csr_matrix(X.astype(np.float32)),
}


N_WORDS = 40


@pytest.fixture(scope="module")
def counts():
    """Rows like counts of words: small integers, nine cells in ten empty."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    rates = np.where(rng.random((3, N_WORDS)) < 0.2, 0.6, 0.05)
    return rng.poisson(rates[y]).astype(float), y


@pytest.fixture
def never_dense(monkeypatch):
    """A sparse table of more than a handful of rows refuses to become dense."""
    for kind in ("csr", "csc", "coo"):
        for form in ("matrix", "array"):
            cls = getattr(scipy.sparse, f"{kind}_{form}")
            for method in ("toarray", "todense"):
                monkeypatch.setattr(cls, method, _guarded(getattr(cls, method)))


def _guarded(method):
    def guarded(self, *args, **options):
        # Single rows (a first centre of k-means) and products of rows with rows may be dense.
        assert self.shape[0] < 10 or self.shape[1:] != (N_WORDS,), f"{self.shape} was made dense"
        return method(self, *args, **options)

    return guarded


@pytest.mark.kernel
@pytest.mark.usefixtures("never_dense")
@pytest.mark.parametrize("kind", fast_with_numpy(SPARSE, ["csr_array", "coo_array"]))
@pytest.mark.parametrize(
    "parameters", [{"label_smoothing": 0.02}, {"solver": "adam"}], ids=["lbfgs", "adam"]
)
def test_sparse_rows_answer_like_dense_ones_and_never_become_dense(counts, kind, parameters):
    X, y = counts
    dense = quick(**parameters).fit(X, y)
    sparse = quick(**parameters).fit(SPARSE[kind](X), y)
    expected = dense.predict_proba(X)
    # Training reads dense rows rounded to 24 bits, and sparse ones as they are.
    np.testing.assert_allclose(sparse.predict_proba(SPARSE[kind](X)), expected, atol=2e-5)
    np.testing.assert_allclose(sparse.predict_proba(X), expected, atol=2e-5)
    np.testing.assert_allclose(dense.predict_proba(SPARSE[kind](X)), expected, atol=1e-9)
    assert dense.score(X, y) > 0.8


@pytest.mark.usefixtures("never_dense")
def test_sparse_rows_with_validation_rows_and_weights_answer_like_dense_ones(counts, rng):
    X, y = counts
    weight = rng.uniform(0.5, 2.0, 150)
    answers = []
    for make in (np.asarray, scipy.sparse.csr_array):
        clf = quick().fit(
            make(X[:150]), y[:150], weight, make(X[150:]), y[150:], sample_weight_val=weight
        )
        answers.append(clf.predict_proba(make(X)))
    # Training reads dense rows rounded to 24 bits, and sparse ones as they are.
    np.testing.assert_allclose(*answers, atol=1e-4)


@pytest.mark.usefixtures("never_dense")
def test_the_default_recipe_keeps_sparse_rows_sparse(counts):
    X, y = counts
    clf = GeometricMixtureClassifier(max_iter=20, random_state=0).fit(scipy.sparse.csr_array(X), y)
    assert clf.model_.lift.kind == "linear"
    assert clf.model_.standardize.rotation is None
    assert any("Sparse input" in note for note in clf.history_.notes)
    assert clf.model_.folded.weights.shape == (clf.n_planes_.sum(), N_WORDS)


# --- what a person sees ---


def test_one_progress_line_is_written_to_standard_error(iris, capfd):
    quick(verbose=1).fit(*iris)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1  # the line is rewritten in place and ended once
    last = err.rstrip("\n").split("\r")[-1]
    assert "geomix training" in last
    assert "loss=" in last
    assert "sharpness=" in last


def test_the_progress_line_names_the_family_and_the_share_of_the_choice_done(iris, capfd):
    GeometricMixtureClassifier(lift="linear", max_iter=20, random_state=0, verbose=1).fit(*iris)
    shown = capfd.readouterr().err
    assert re.search(r"geomix choosing: [a-z ]+, \d+% of the choice done", shown), shown[:300]


def test_the_progress_line_shows_the_validation_loss_where_there_is_one(iris, capfd):
    X, y = iris
    quick(verbose=1, max_iter=100).fit(X, y, X_val=X, y_val=y)
    assert "valid=" in capfd.readouterr().err.split("\r")[-1]


def test_nothing_is_written_without_verbose(iris, capfd):
    clf = quick().fit(*iris)
    clf.predict_proba(iris[0])
    assert capfd.readouterr() == ("", "")


def test_an_interrupted_fit_ends_its_progress_line(iris, capfd, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(geomix.training.run.Run, "step_done", stop)
    with pytest.raises(KeyboardInterrupt):
        quick(verbose=1).fit(*iris)
    assert capfd.readouterr().err.endswith("\n")


# --- scikit-learn's callbacks, where the installed version has them ---


def test_a_scoring_monitor_sees_every_iteration(iris):
    callback = pytest.importorskip("sklearn.callback", reason="callbacks came with 1.9")
    X, y = iris
    monitor = callback.ScoringMonitor(scoring="neg_log_loss")
    clf = quick().set_callbacks(monitor).fit(X, y)
    log = monitor.get_logs().data_as_pandas
    assert len(log) == clf.n_iter_
    assert log["neg_log_loss"].iloc[-1] > log["neg_log_loss"].iloc[0]
    uncalibrated = clf.model_.with_temperature(1.0).predict_proba(X)
    assert -log["neg_log_loss"].iloc[-1] == pytest.approx(log_loss(y, uncalibrated), rel=1e-9)


def test_a_callback_changes_no_bit_and_is_forgotten_by_pickles(iris, fitted):
    callback = pytest.importorskip("sklearn.callback", reason="callbacks came with 1.9")
    X, y = iris
    clf = quick().set_callbacks(callback.ScoringMonitor(scoring="accuracy")).fit(X, y)
    assert np.array_equal(clf.predict_proba(X), fitted.predict_proba(X))
    copy = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(copy.predict_proba(X), fitted.predict_proba(X))


def test_a_callback_can_end_training(iris):
    pytest.importorskip("sklearn.callback", reason="callbacks came with 1.9")

    class StopAfter:
        def __init__(self, n):
            self.n_left = n

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, **told):
            self.n_left -= 1
            return self.n_left == 0

    clf = quick().set_callbacks(StopAfter(5)).fit(*iris)
    assert clf.n_iter_ == 5
    assert clf.history_.stopped == "request"


def test_every_task_that_begins_ends_and_the_fit_last(iris):
    pytest.importorskip("sklearn.callback", reason="callbacks came with 1.9")

    class Ledger:
        def __init__(self):
            self.lines = []

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context, **told):
            self.lines.append(("begin", context.task_name, context.task_id))

        def on_fit_task_end(self, estimator, context, **told):
            self.lines.append(("end", context.task_name, context.task_id))

    ledger = Ledger()
    quick().set_callbacks(ledger).fit(*iris)
    begun = [rest for what, *rest in ledger.lines if what == "begin"]
    assert sorted(begun) == sorted(rest for what, *rest in ledger.lines if what == "end")
    assert ledger.lines[0] == ("begin", "fit", 0)
    assert ledger.lines[-1] == ("end", "fit", 0)


@pytest.mark.filterwarnings("default:Training stopped at max_iter")
def test_a_fit_that_ends_at_max_iter_is_warned_of(iris):
    with pytest.warns(ConvergenceWarning, match="max_iter=3 before it converged"):
        quick(max_iter=3).fit(*iris)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = quick(max_iter=2000).fit(*iris)
        quick(max_iter=5, solver="adam").fit(*iris)  # epochs are a schedule
    assert clf.history_.stopped == "converged"


def test_a_progress_bar_of_scikit_learn_is_drawn(iris, fitted, capfd):
    callback = pytest.importorskip("sklearn.callback", reason="callbacks came with 1.9")
    pytest.importorskip("rich", reason="scikit-learn draws its progress bars with rich")
    X, y = iris
    clf = quick().set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "GeometricMixtureClassifier" in capfd.readouterr().out
    assert np.array_equal(clf.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.kernel
def test_small_numpy_fits_run_on_one_blas_thread_and_give_the_threads_back(monkeypatch):
    import threadpoolctl

    from geomix.core import blas_threads

    def n_threads():
        return {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}

    with threadpoolctl.threadpool_limits(2):
        before = n_threads()
        monkeypatch.setattr(blas_threads.kernel, "is_native", False)
        with blas_threads.blas_threads(1000):
            assert 1 in n_threads()
        with blas_threads.blas_threads(10**9):
            assert n_threads() == before
        assert n_threads() == before
