"""scikit-learn's own contract for estimators: every check, none expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from geomix import GeometricMixtureClassifier

pytestmark = pytest.mark.kernel


@parametrize_with_checks([GeometricMixtureClassifier()])
# Some checks fit on a handful of rows, and on odd ones: a warning is in order.
@pytest.mark.filterwarnings("ignore::geomix.DataQualityWarning")
def test_scikit_learns_contract(estimator, check):
    check(estimator)
