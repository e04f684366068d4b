"""A probability that can only rise with a column, proved for every row."""

from sklearn.datasets import load_breast_cancer

from geomix import GeometricMixtureClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X[["mean area", "mean texture", "mean concavity"]], y.map({0: "malignant", 1: "benign"})

rising = {"mean area": {"malignant": 1}, "mean concavity": {"malignant": 1}}
clf = GeometricMixtureClassifier(
    n_planes=1, lift="spline", monotonic_cst=rising, random_state=0
).fit(X, y)

print(f"accuracy {clf.score(X, y):.3f}")
print(clf.model_.check_monotone(rising))
