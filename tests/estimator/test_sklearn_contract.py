"""scikit-learn's own contract for estimators: every check, on every documented configuration."""

import numpy as np
import pytest
import scipy.sparse
from configurations import CONFIGURATIONS
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from geomix import GeometricMixtureClassifier, Recipe

pytestmark = pytest.mark.kernel

# The others differ from these in settings alone, and run with `make test-all`.
QUICK = ("the default", "fast")


def expected_to_fail(estimator):
    if estimator.correct_prior:
        return {"check_class_weight_classifiers": "the effect that it looks for is removed"}
    if estimator.get_params() == GeometricMixtureClassifier.paper().get_params():
        return {"check_class_weight_classifiers": "nine planes for fifty rows of noise"}
    return {}


def contract(names):
    estimators = [CONFIGURATIONS[name] for name in names]
    return parametrize_with_checks(estimators, expected_failed_checks=expected_to_fail)


# Some checks fit on a handful of rows, and on odd ones: a warning is in order.
@contract(QUICK)
@pytest.mark.filterwarnings("ignore::geomix.DataQualityWarning")
def test_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@contract([name for name in CONFIGURATIONS if name not in QUICK])
@pytest.mark.filterwarnings("ignore::geomix.DataQualityWarning")
def test_scikit_learns_contract_for_every_documented_configuration(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("parameters", "is_sparse"),
    [
        ({}, True),
        ({"lift": "linear"}, True),
        ({"lift": ("linear", "spline")}, True),
        ({"preset": "fast"}, True),
        ({"lift": "spline"}, False),
        ({"lift": "fourier"}, False),
        ({"advanced": Recipe(pca=2)}, False),
    ],
)
def test_the_tag_for_sparse_rows_follows_the_parameters(iris, parameters, is_sparse):
    X, y = scipy.sparse.csr_array(iris[0]), iris[1]
    clf = GeometricMixtureClassifier(max_iter=10, random_state=0, **parameters)
    assert get_tags(clf).input_tags.sparse is is_sparse
    if is_sparse:
        assert clf.fit(X, y).predict_proba(X).shape == (150, 3)
    else:
        with pytest.raises(TypeError, match="Sparse data was passed"):
            clf.fit(X, y)


@pytest.mark.parametrize(
    ("monotonic_cst", "is_multi_class"),
    [
        (None, True),
        ({"a": {"toxic": 1}}, True),
        ({0: 0}, True),
        ([0, 0], True),
        ({0: 1}, False),
        ([1, 0, -1], False),
        (np.array([0, 1]), False),
    ],
)
def test_signs_without_a_class_are_tagged_as_for_two_classes(monotonic_cst, is_multi_class):
    tags = get_tags(GeometricMixtureClassifier(monotonic_cst=monotonic_cst))
    assert tags.classifier_tags.multi_class is is_multi_class
