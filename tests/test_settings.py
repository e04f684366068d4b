"""The settings refuses what it cannot use and says what it expected; the estimator mirrors it."""

import inspect
import reprlib
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction

import numpy as np
import pytest

from geomix import GeometricMixtureClassifier, InvalidParameterError
from geomix.training.settings import PAPER, Settings

CHOICES = {
    "lift": ("auto", "linear", "spline", "fourier"),
    "usage_average": ("batch", "running"),
    "init": ("auto", "kmeans", "logistic", "random"),
    "solver": ("auto", "adam", "lbfgs"),
    "early_stopping": ("auto", "calibrated", "plain", "off"),
    "schedule": ("cosine", "exponential", "constant"),
}
COUNTS = ("max_planes", "n_frequencies", "batch_size", "max_iter", "n_iter_no_change", "n_members")
SWITCHES = ("orthogonal", "standardize", "correct_prior", "calibrate", "refit")
# Smallest and largest value that is accepted, both included.
RANGES = {
    "sharpness": (1e-6, 1e6),
    "sharpness_start": (1e-6, 1e6),
    "l2": (0.0, 1e6),
    "shrink_to_mean": (0.0, 0.999),
    "gamma": (1e-300, 1e300),
    "usage_beta": (0.0, 1e6),
    "usage_delta": (1e-12, 1e6),
    "label_smoothing": (0.0, 0.9),
    "learning_rate": (1e-12, 1e6),
    "tol": (0.0, 1.0),
    "validation_fraction": (0.01, 0.9),
    "clip_norm": (1e-12, 1e100),
    "max_weight_norm": (1e-12, 1e100),
    "pca": (1e-6, 1.0),
    "time_limit": (1e-3, 1e9),
}
MAY_BE_AUTO = ("n_planes", "n_frequencies", "l2", "shrink_to_mean", "gamma", "pca", "n_members")
MAY_BE_NONE = ("clip_norm", "max_weight_norm", "pca", "time_limit")


def refuses(name, value, expected):
    """The settings refuses ``value``, by name and value, and says what it ``expected``."""
    with pytest.raises(InvalidParameterError) as caught:
        Settings(**{name: value})
    message = str(caught.value)
    got, _, rest = message.partition("; expected ")
    assert got == f"Got {name}={reprlib.repr(value)}"
    assert expected in rest
    assert rest.endswith(".")
    return message


def expected_of(name):
    """How a message describes the range of ``name``."""
    if name == "pca":
        return "a share of variance up to 1.0, or an integer of at least 1"
    low, high = (int(end) if end in (0.0, 1.0) else end for end in RANGES[name])
    return f"a number between {low} and {high}"


def every(values):
    return [(name, value) for name in values for value in values[name]]


def test_every_field_of_the_recipe_is_tested_here():
    by_hand = {"n_planes", "n_knots", "monotonic_cst", "adaptive_penalty"}
    tested = {*CHOICES, *COUNTS, *SWITCHES, *RANGES, *by_hand}
    assert tested == {field.name for field in fields(Settings)}


# --- choices ---


def test_some_lifts_are_tried_simple_ones_first():
    assert Settings(lift=["fourier", "linear"]).lifts == ("linear", "fourier")
    assert Settings().lifts == ("linear", "spline", "fourier")
    assert Settings(lift="spline").lifts == ("spline",)


@pytest.mark.parametrize("value", [(), ("auto",), ("linear", "cubic"), ("linear", 1), {"linear"}])
def test_a_tuple_of_anything_but_lifts_is_refused(value):
    refuses("lift", value, "or a tuple of some of the last three")


@pytest.mark.parametrize("value", [{}, "dose", ["dose"], 1, True])
def test_monotone_columns_are_a_dict(value):
    refuses("monotonic_cst", value, "None, or a dict")


def test_monotone_columns_leave_fourier_out():
    wanted = {"dose": {"toxic": 1}}
    assert Settings(monotonic_cst=wanted).lifts == ("linear", "spline")
    assert Settings(monotonic_cst=wanted, lift=("linear", "fourier")).lifts == ("linear",)


@pytest.mark.parametrize("value", [1, 0, -3, 249, 2.0, "many", None, True])
def test_knots_are_a_count_that_leaves_room_for_bins(value):
    refuses("n_knots", value, '"auto" or an integer between 2 and 248')


@pytest.mark.parametrize("value", [1, 0.5, "both", None, np.array([True])])
def test_columns_are_weighed_or_not_or_both_are_tried(value):
    assert Settings().adaptive_penalty == "auto"
    assert Settings(adaptive_penalty=np.True_).adaptive_penalty is True
    refuses("adaptive_penalty", value, '"auto", True or False')


@pytest.mark.parametrize(("name", "value"), every(CHOICES))
def test_every_choice_is_accepted(name, value):
    assert getattr(Settings(**{name: value}), name) == value


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("value", ["best", "", "AUTO", None, 1, True, ["auto"], np.array(["auto"])])
def test_anything_but_a_choice_is_refused_with_the_choices(name, value):
    refuses(name, value, "one of " + ", ".join(map(repr, CHOICES[name])))


# --- counts ---


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [1, 10**6, np.int64(3), np.uint8(3)])
def test_counts_from_one_are_accepted(name, value):
    accepted = getattr(Settings(**{name: value}), name)
    assert accepted == value
    assert type(accepted) is int


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, np.nan, "2", "all", None, True, [2], 2j])
def test_anything_but_a_count_is_refused(name, value):
    refuses(name, value, "an integer of at least 1")


# --- numbers ---


@pytest.mark.parametrize(("name", "value"), every(RANGES))
def test_the_ends_of_a_range_are_accepted(name, value):
    accepted = getattr(Settings(**{name: value}), name)
    assert accepted == value
    assert type(accepted) is float


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("kind", [np.float64, np.float32, lambda value: Fraction(1, 2)])
def test_numbers_of_every_kind_become_plain_floats(name, kind):
    value = kind(0.5)
    accepted = getattr(Settings(**{name: value}), name)
    assert accepted == 0.5
    assert type(accepted) is float


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("side", [0, 1])
def test_a_number_just_outside_its_range_is_refused(name, side):
    end = RANGES[name][side]
    outside = np.nextafter(end, [-np.inf, np.inf][side])
    refuses(name, float(outside), expected_of(name))


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize(
    "value",
    [np.nan, np.inf, -np.inf, -1, -1.0, "0.5", "", True, np.True_, 0.5j, [0.5], {},
     np.array([0.5, 0.5]), np.array("auto"), ...],
)  # fmt: skip
def test_anything_but_a_number_is_refused(name, value):
    refuses(name, value, expected_of(name))


@pytest.mark.parametrize("name", [name for name in RANGES if name != "pca"])
def test_an_integer_beyond_every_float_is_refused(name):
    refuses(name, 10**400, expected_of(name))


@pytest.mark.parametrize("name", [name for name in RANGES if name not in MAY_BE_NONE])
def test_none_is_no_number(name):
    refuses(name, None, expected_of(name))


@pytest.mark.parametrize("name", [name for name in RANGES if name not in MAY_BE_AUTO])
def test_auto_is_no_number(name):
    refuses(name, "auto", expected_of(name))


@pytest.mark.parametrize("name", [name for name in COUNTS if name not in MAY_BE_AUTO])
def test_auto_is_no_count(name):
    refuses(name, "auto", "an integer of at least 1")


@pytest.mark.parametrize("name", MAY_BE_AUTO)
def test_auto_is_accepted_where_something_can_be_chosen(name):
    assert getattr(Settings(**{name: "auto"}), name) == "auto"


@pytest.mark.parametrize("name", MAY_BE_NONE)
def test_none_is_accepted_where_something_can_be_left_out(name):
    assert getattr(Settings(**{name: None}), name) is None


@pytest.mark.parametrize(("value", "kind"), [(1, int), (7, int), (np.int32(7), int), (1.0, float)])
def test_pca_tells_a_count_of_axes_from_a_share_of_variance(value, kind):
    accepted = Settings(pca=value).pca
    assert accepted == value
    assert type(accepted) is kind


@pytest.mark.parametrize("value", [0, -3, 0.0, 1.5, 2.0])
def test_pca_refuses_no_axes_and_more_than_all_variance(value):
    refuses("pca", value, "a share of variance up to 1.0, or an integer of at least 1")


# --- planes and switches ---


@pytest.mark.parametrize("value", ["auto", 1, 50, np.int64(2), {"a": 1, 0: np.int64(3)}])
def test_planes_may_be_auto_a_count_or_counts_by_label(value):
    assert Settings(n_planes=value).n_planes == value


@pytest.mark.parametrize(
    "value",
    [0, -1, 2.0, np.nan, "2", "many", None, True, [2, 2], {}, {0: 0}, {0: 1, 1: 1.0},
     {0: "auto"}, {0: True}, np.array([2, 2])],
)  # fmt: skip
def test_any_other_number_of_planes_is_refused(value):
    expected = '"auto", "silhouette", an integer of at least 1, or a dict of class label'
    refuses("n_planes", value, expected)


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_switches_are_on_or_off(name, value):
    accepted = getattr(Settings(**{name: value}), name)
    assert accepted is bool(value)


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", [0, 1, 1.0, "True", "auto", None, [True], np.array(True)])
def test_anything_but_a_switch_is_refused(name, value):
    refuses(name, value, "True or False")


# --- the settings as a value ---


def test_a_message_keeps_long_values_short():
    message = refuses("n_planes", list(range(10_000)), "an integer")
    assert len(message) < 200


def test_a_recipe_cannot_be_changed_once_made():
    with pytest.raises(FrozenInstanceError):
        Settings().l2 = 0.5


def test_the_estimator_has_the_recipes_parameters_and_six_more():
    given = inspect.signature(GeometricMixtureClassifier.__init__).parameters
    defaults = {name: p.default for name, p in given.items() if name != "self"}
    expected = {field.name: field.default for field in fields(Settings)}
    expected |= {"class_weight": None, "random_state": None, "verbose": 0}
    expected |= {"categorical_features": None, "missing": "learn", "warm_start": False}
    assert defaults == expected


def test_the_defaults_of_the_recipe_are_accepted_as_they_are():
    settings = Settings()
    for field in fields(Settings):
        value = getattr(settings, field.name)
        assert value == field.default
        assert type(value) is type(field.default)


@pytest.mark.parametrize(
    ("name", "value"), [("l2", -1.0), ("max_planes", 0), ("solver", "best"), ("refit", 1)]
)
def test_the_estimator_takes_anything_and_refuses_it_in_fit(iris, name, value):
    clf = GeometricMixtureClassifier(**{name: value})
    assert clf.get_params()[name] == value
    with pytest.raises(InvalidParameterError, match=rf"Got {name}={value!r}; expected"):
        clf.fit(*iris)


def test_numpy_numbers_train_the_same_model_as_plain_ones(iris):
    plain = {"sharpness": 5.0, "label_smoothing": 0.125, "pca": 0.5, "max_iter": 20, "l2": 0.5}
    numpy = {name: np.asarray(value)[()] for name, value in plain.items()}
    numpy |= {"sharpness": np.float32(5.0), "label_smoothing": np.float32(0.125)}
    numpy |= {"pca": np.float16(0.5), "l2": Fraction(1, 2)}
    a, b = (
        GeometricMixtureClassifier(2, lift="linear", random_state=0, **given).fit(*iris)
        for given in (plain, numpy)
    )
    assert np.array_equal(a.predict_proba(iris[0]), b.predict_proba(iris[0]))


# --- the paper ---


def test_the_papers_recipe_has_the_values_of_the_appendix_table():
    # Appendix, "Training hyperparameters": row "GMC (default)", column by column.
    table = {
        "n_planes": "silhouette", "max_planes": 4,        # M_c: auto (1-4), by silhouette
        "sharpness_start": 3.0, "sharpness": 6.0,         # alpha sched.: 3 -> 6
        "l2": 1e-4,                                       # lambda
        "usage_beta": 0.5,                                # beta
        "label_smoothing": 0.02,                          # label smooth.
        "batch_size": 256,                                # batch size
        "early_stopping": "plain",                        # epochs: early stop
        "init": "auto",                                   # k-means/logreg init
        "solver": "adam", "schedule": "cosine",           # Adam; cosine LR
    }  # fmt: skip
    settings = Settings(**PAPER)
    assert {name: getattr(settings, name) for name in table} == table
    assert settings.clip_norm is not None  # grad clip


def test_the_papers_recipe_has_the_settings_of_the_main_text():
    # "Implementation details": n_iter_no_change 12, PCA for wide input, a lift chosen by validation
    # likelihood; independent frequencies; validation rows are not trained on afterwards.
    settings = Settings(**PAPER)
    assert settings.n_iter_no_change == 12
    assert settings.pca == "auto"
    assert settings.lifts == ("linear", "fourier")
    assert settings.orthogonal is False
    assert settings.calibrate is True
    assert settings.refit is False


def test_the_papers_recipe_leaves_nothing_to_defaults_that_may_change():
    assert set(PAPER) == {field.name for field in fields(Settings)}


def test_the_papers_estimator_is_its_recipe_with_the_users_changes():
    clf = GeometricMixtureClassifier.paper(l2=0.5, random_state=3)
    expected = {**GeometricMixtureClassifier().get_params(), **PAPER, "l2": 0.5, "random_state": 3}
    assert clf.get_params() == expected
