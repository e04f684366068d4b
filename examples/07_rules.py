"""A few short rules that describe a model."""

from sklearn.datasets import load_iris

from geomix import GeometricMixtureClassifier

X, y = load_iris(return_X_y=True, as_frame=True)
y = y.map({0: "setosa", 1: "versicolor", 2: "virginica"})
clf = GeometricMixtureClassifier(n_planes=1, lift="linear", random_state=0).fit(X, y)

print(clf.model_.rules(X, y, max_terms=3, digits=2))
