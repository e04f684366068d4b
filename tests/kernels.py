"""What tests do differently with the NumPy kernel."""

import pytest

from geomix.core import kernel

# Marks of a parameter that takes ten seconds and more with NumPy: then `make test-all` runs it.
SLOW_WITH_NUMPY = () if kernel.is_native else pytest.mark.slow
