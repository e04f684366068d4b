"""Fit a classifier and look at what was chosen: python examples/01_first_model.py"""

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier

X, y = load_wine(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)

clf = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y)

print(f"accuracy {clf.score(X_test, y_test):.3f}")
print(clf.history_.choice)
print("planes per class:", clf.n_planes_)
