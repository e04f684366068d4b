"""Settings refuse what they cannot use and name what is expected; the estimator mirrors them."""

import inspect
import pickle
import reprlib
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction

import numpy as np
import pytest
from making import classifier
from sklearn.base import clone

from geomix import GeometricMixtureClassifier, InvalidParameterError, Recipe
from geomix.estimator import routed
from geomix.training.recipe import RECIPE_NAMES
from geomix.training.settings import PAPER, Settings

CHOICES = {
    "preset": ("readable", "accurate", "fast"),
    "lift": ("auto", "linear", "spline", "fourier"),
    "usage_average": ("batch", "running"),
    "learn_lift": ("auto", "off", "scales", "frequencies"),
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
MAY_BE_AUTO = (
    "n_planes", "max_planes", "max_interactions", "n_members", "n_frequencies", "n_knots",
    "l2", "shrink_to_mean", "adaptive_penalty", "gamma", "pca",
)  # fmt: skip
MAY_BE_NONE = ("clip_norm", "max_weight_norm", "pca", "time_limit", "n_jobs", "monotonic_cst")
ENSEMBLE = {"preset": "accurate"}  # the preset that allows one


def refuses(name, value, expected):
    """Settings, and a recipe that has it, refuse ``value`` by name, with what was expected."""
    for kind in (Recipe, Settings) if name in RECIPE_NAMES else (Settings,):
        with pytest.raises(InvalidParameterError) as caught:
            kind(**{name: value})
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
    by_hand |= {"max_interactions", "n_jobs"}
    tested = {*CHOICES, *COUNTS, *SWITCHES, *RANGES, *by_hand}
    assert tested == {field.name for field in fields(Settings)}


# --- choices ---


def test_some_lifts_are_tried_simple_ones_first():
    assert Settings(lift=("fourier", "linear")).lifts == ("linear", "fourier")
    assert Settings().lifts == ("linear", "spline", "fourier")
    assert Settings(lift="spline").lifts == ("spline",)


@pytest.mark.parametrize(
    "value",
    [
        (),
        ("auto",),
        ("linear", "cubic"),
        ("linear", 1),
        {"linear"},
        ["linear"],
        ["linear", "spline"],
    ],
)
def test_anything_but_a_tuple_of_lifts_is_refused_with_a_tuple(value):
    refuses("lift", value, "or a tuple of some of the last three, such as ('linear', 'spline')")


@pytest.mark.parametrize("value", [{}, "dose", ["dose"], [], [2, 0], [1.0, 0], [True], 1, True])
def test_monotone_columns_are_a_dict_or_a_sign_for_each_column(value):
    refuses("monotonic_cst", value, "None, a dict such as {'dose': {'toxic': 1}}, or a list of")


@pytest.mark.parametrize("value", [[0, 1, -1], (0, 1, -1), np.array([0, 1, -1])])
def test_signs_for_each_column_may_be_a_list_or_an_array(value):
    assert Settings(monotonic_cst=value).monotonic_cst == (0, 1, -1)
    assert Settings(monotonic_cst=value).is_monotone


@pytest.mark.parametrize("value", [None, [0, 0], {"dose": 0}, {"dose": {"toxic": 0}}])
def test_columns_that_are_all_free_exclude_nothing(value):
    assert not Settings(monotonic_cst=value).is_monotone
    assert Settings(monotonic_cst=value, solver="adam").lifts == ("linear", "spline", "fourier")


@pytest.mark.parametrize("value", [-1, 1.0, "some", None, True, [1]])
def test_interactions_are_a_count_from_zero(value):
    assert Settings(max_interactions=0).max_interactions == 0
    refuses("max_interactions", value, '"auto" or an integer of at least 0')


@pytest.mark.parametrize("value", [0, 1.0, "all", True, [1]])
def test_jobs_are_a_count_other_than_zero(value):
    assert [Settings(n_jobs=n).n_jobs for n in (None, 2, -1)] == [None, 2, -1]
    refuses("n_jobs", value, "None or an integer other than 0")


@pytest.mark.parametrize("preset", ["readable", "fast"])
def test_an_ensemble_needs_the_accurate_preset(preset):
    with pytest.raises(InvalidParameterError, match='Got n_members=3; expected "auto" or 1 with'):
        Settings(preset=preset, n_members=3)
    assert Settings(preset=preset, n_members=1).n_members == 1
    assert Settings(**ENSEMBLE, n_members=3).n_members == 3


def test_a_fourier_lift_overrides_the_readable_preset():
    assert Settings(lift="fourier").lifts == ("fourier",)


def test_max_planes_auto_stands_for_a_number_by_preset_and_lift():
    assert Settings().most_planes("spline") == 4
    assert Settings().most_planes("linear") == 12
    assert Settings(preset="accurate").most_planes("spline") == 32
    assert Settings(max_planes=7).most_planes("spline") == 7


def test_monotone_columns_leave_fourier_out():
    wanted = {"dose": {"toxic": 1}}
    assert Settings(monotonic_cst=wanted).lifts == ("linear", "spline")
    assert Settings(monotonic_cst=wanted, lift=("linear", "fourier")).lifts == ("linear",)


@pytest.mark.parametrize("value", [1, 0, -3, 249, 2.0, "many", None, True])
def test_knots_are_a_count_that_leaves_room_for_bins(value):
    refuses("n_knots", value, '"auto" or an integer between 2 and 248')


@pytest.mark.parametrize("value", [1, 0.5, "both", None, np.array([True])])
def test_the_penalty_is_adaptive_or_uniform_or_both_are_tried(value):
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
    accepted = getattr(Settings(**{**ENSEMBLE, name: value}), name)
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


# --- settings and recipe as values ---


def test_a_message_keeps_long_values_short():
    message = refuses("n_planes", list(range(10_000)), "an integer")
    assert len(message) < 200


@pytest.mark.parametrize("kind", [Recipe, Settings])
def test_settings_cannot_be_changed_once_made(kind):
    with pytest.raises(FrozenInstanceError):
        kind().sharpness = 0.5


def test_the_estimators_parameters_and_the_recipe_are_the_settings_and_seven_more():
    given = inspect.signature(GeometricMixtureClassifier).parameters
    defaults = {name: p.default for name, p in given.items()}
    assert defaults.keys() & set(RECIPE_NAMES) == set()
    expected = {field.name: field.default for field in fields(Settings)}
    expected |= {"class_weight": None, "random_state": None, "verbose": 0, "advanced": None}
    expected |= {"categorical_features": None, "missing": "learn", "warm_start": False}
    assert defaults | {field.name: field.default for field in fields(Recipe)} == expected


@pytest.mark.parametrize("kind", [Recipe, Settings])
def test_the_defaults_are_accepted_as_they_are(kind):
    made = kind()
    for field in fields(kind):
        value = getattr(made, field.name)
        assert value == field.default
        assert type(value) is type(field.default)


def test_a_recipe_shows_what_differs_from_the_defaults():
    assert repr(Recipe()) == "Recipe()"
    shown = repr(Recipe(solver="adam", sharpness=8))
    assert shown == "Recipe(sharpness=8.0, solver='adam')"
    assert eval(shown) == Recipe(sharpness=8.0, solver="adam")


def test_a_recipe_can_be_cloned_pickled_and_searched():
    recipe = Recipe(sharpness=8)
    twin = clone(GeometricMixtureClassifier(advanced=recipe))
    assert twin.advanced == recipe == pickle.loads(pickle.dumps(recipe))
    assert twin.settings().sharpness == 8.0


@pytest.mark.parametrize("value", [{"sharpness": 8}, "paper", 3, Recipe])
def test_advanced_is_a_recipe_or_none(iris, value):
    with pytest.raises(InvalidParameterError, match=r"expected None or a geomix\.Recipe"):
        GeometricMixtureClassifier(advanced=value).fit(*iris)


def test_names_of_the_estimator_and_of_the_recipe_go_to_their_places():
    given = routed({"l2": 0.5, "sharpness": 8, "advanced": Recipe(solver="adam")})
    assert given == {"l2": 0.5, "advanced": Recipe(sharpness=8, solver="adam")}
    assert routed({"l2": 0.5}) == {"l2": 0.5}


@pytest.mark.parametrize(
    ("name", "near"), [("sharpnes", "sharpness"), ("max_plane", "max_planes"), ("solvr", "solver")]
)
def test_an_unknown_name_is_refused_with_the_nearest(name, near):
    words = f"There is no parameter '{name}'; did you mean '{near}'"
    with pytest.raises(InvalidParameterError, match=words):
        routed({name: 1})
    with pytest.raises(InvalidParameterError, match=words):
        GeometricMixtureClassifier.paper(**{name: 1})


def test_a_name_that_is_like_no_other_is_refused():
    with pytest.raises(InvalidParameterError, match=r"There is no parameter 'xyz'\.$"):
        routed({"xyz": 1})


@pytest.mark.parametrize(
    ("name", "value"), [("l2", -1.0), ("max_planes", 0), ("preset", "best"), ("n_jobs", 0)]
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
        classifier(2, lift="linear", random_state=0, **given).fit(*iris) for given in (plain, numpy)
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
    clf = GeometricMixtureClassifier.paper(l2=0.5, sharpness=8, random_state=3)
    assert clf.random_state == 3
    assert clf.settings() == Settings(**{**PAPER, "l2": 0.5, "sharpness": 8.0})
