"""What tests do differently with the NumPy kernel."""

import pytest

from geomix.core import kernel

# Mark of a test or parameter that only `make test-all` runs with NumPy: one that takes seconds,
# or whose other parameters send the same code through the NumPy kernel.
SLOW_WITH_NUMPY = pytest.mark.kernel if kernel.is_native else pytest.mark.slow


def fast_with_numpy(every, fast):
    """Parameters of a test, of which `make test` runs the ``fast`` ones with NumPy."""
    return [one if one in fast else pytest.param(one, marks=SLOW_WITH_NUMPY) for one in every]
