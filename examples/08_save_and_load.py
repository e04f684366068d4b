"""A model as a small file that loads without running code, with the same bits."""

import tempfile
from pathlib import Path

from sklearn.datasets import load_wine

import geomix
from geomix import GeometricMixtureClassifier

X, y = load_wine(return_X_y=True, as_frame=True)
model = GeometricMixtureClassifier(n_planes=1, lift="spline", random_state=0).fit(X, y).model_

path = Path(tempfile.mkdtemp()) / "wine.geomix"
model.with_edit("note", text="first version").save(path)
loaded = geomix.load(path)

print(f"{path.stat().st_size} bytes")
print("same probabilities:", (loaded.predict_proba(X) == model.predict_proba(X)).all())
print("log:", loaded.edits)
