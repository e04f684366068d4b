"""What is the smallest change that leads to another prediction?"""

from sklearn.datasets import load_breast_cancer

from geomix import GeometricMixtureClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
clf = GeometricMixtureClassifier(n_planes=1, lift="linear", random_state=0).fit(X, y)

p_malignant = clf.predict_proba(X)[:, 1]
row = X.iloc[[abs(p_malignant - 0.8).argmin()]]  # an uncertain case
found = clf.model_.counterfactual(row, target="benign", immutable=["mean radius"], sparse=3)
print(found)
print(f"no such row is nearer than {found.lower_bound:.3f}")
