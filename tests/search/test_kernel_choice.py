"""Both kernels choose the same model."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from geomix.core import kernel

CODE = """
import json
import numpy as np
from sklearn.datasets import load_iris, make_circles, make_moons
from geomix import GeometricMixtureClassifier

sets = [load_iris(return_X_y=True), make_moons(150, noise=0.3, random_state=0)]
sets += [make_circles(150, noise=0.1, factor=0.5, random_state=0)]
for X, y in sets:
    clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
    found = next(trial for trial in clf.history_.trials if trial.chosen)
    choice = found.family, found.lift, found.n_planes, found.n_pairs, found.n_knots, found.l2
    print(json.dumps([choice, clf.predict_proba(X).tolist()]))
"""


def fitted_with(name):
    """Chosen models and probabilities of every set, in a process with this kernel."""
    environment = {**os.environ, "GEOMIX_KERNEL": name}
    ran = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=environment, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.skipif(not kernel.is_native, reason="the NumPy kernel is in use")
def test_both_kernels_choose_the_same_model():
    native, numpy = fitted_with("native"), fitted_with("numpy")
    assert [choice for choice, _ in native] == [choice for choice, _ in numpy]
    for (_, ours), (_, theirs) in zip(native, numpy, strict=True):
        # Spline features are float32 in native training only.
        for one, other in zip(ours, theirs, strict=True):
            assert one == pytest.approx(other, abs=1e-2)
