"""What a wheel must do right after its installation: fit, predict, save and load with the core."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

import geomix
from geomix.core import kernel


def main() -> None:
    """Raise where the installed package does not do it."""
    geomix.show_versions()
    assert kernel.is_native, "the wheel has no compiled core"
    X, y = load_iris(return_X_y=True)
    clf = geomix.GeometricMixtureClassifier(random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.9
    path = Path(tempfile.mkdtemp()) / "m.geomix"
    clf.save(path)
    assert np.array_equal(geomix.load(path).predict_proba(X), clf.predict_proba(X))
    print("fitted, saved and loaded with the compiled core")


if __name__ == "__main__":
    main()
