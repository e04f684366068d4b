"""Why did a row get its prediction? Contributions that add up exactly."""

from sklearn.datasets import load_breast_cancer

from geomix import GeometricMixtureClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
clf = GeometricMixtureClassifier(n_planes=1, lift="linear", random_state=0).fit(X, y)

why = clf.model_.explain_local(X[:1])
print(why[0])

parts = why.contributions.sum() + why.bias.sum() + why.pooling.sum()
print(f"sum of the parts {parts:.9f} = margin {why.margin[0]:.9f}")
