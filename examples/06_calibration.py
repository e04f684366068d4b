"""How far can the probabilities be trusted?"""

from sklearn.datasets import make_moons

from geomix import GeometricMixtureClassifier
from geomix.core.calibration import expected_calibration_error, reliability_curve

X, y = make_moons(1000, noise=0.3, random_state=0)
X_test, y_test = make_moons(20_000, noise=0.3, random_state=1)
clf = GeometricMixtureClassifier(n_planes=3, lift="linear", random_state=0).fit(X, y)

P = clf.predict_proba(X_test)
print(f"temperature {clf.model_.temperature:.2f}")
print(f"calibration error {expected_calibration_error(P, y_test):.4f}")
curve = reliability_curve(P, y_test)
for confidence, accuracy, share in zip(curve.confidence, curve.accuracy, curve.share, strict=True):
    if share > 0:
        print(
            f"mean confidence {confidence:.3f}, accuracy {accuracy:.3f} ({share:.1%} of the rows)"
        )
