"""
Calibrated probabilities and thresholds
=======================================

A bank loses five times as much on a bad loan as it earns on a good one. It needs honest
probabilities, and a threshold that fits its costs.
"""

# %%
# Fit
# ---

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier

credit = pd.read_csv("data/credit.csv")
X, X_test, y, y_test = train_test_split(
    credit.drop(columns="risk"),
    credit["risk"],
    test_size=0.4,
    stratify=credit["risk"],
    random_state=0,
)
clf = GeometricMixtureClassifier(lift=("linear", "spline"), n_planes=1, random_state=0).fit(X, y)
print(f"temperature {clf.model_.temperature:.2f}")

# %%
# How good are the probabilities?
# -------------------------------
# The calibration error is the mean difference between confidence and accuracy.

from geomix.core.calibration import expected_calibration_error, negative_log_likelihood
from geomix.plots import ReliabilityDisplay

codes = np.searchsorted(clf.classes_, y_test)
P = clf.predict_proba(X_test)
print(f"log-loss {negative_log_likelihood(P, codes):.3f}")
print(f"calibration error {expected_calibration_error(P, codes):.3f}")
ReliabilityDisplay.from_estimator(clf, X_test, y_test, before=True).plot()

# %%
# A threshold from costs
# ----------------------
# A refused good loan costs 1, an accepted bad loan costs 5. With calibrated probabilities the
# best threshold needs no search: refuse if 5 p(bad) > 1 p(good), so if p(bad) > 1/6.

COST_BAD, COST_GOOD = 5.0, 1.0
threshold = COST_GOOD / (COST_GOOD + COST_BAD)
p_bad = P[:, list(clf.classes_).index("bad")]


def cost(refused):
    is_bad = (y_test == "bad").to_numpy()
    return (COST_BAD * (is_bad & ~refused) + COST_GOOD * (~is_bad & refused)).mean()


print(f"threshold 0.50: cost per loan {cost(p_bad > 0.5):.3f}")
print(f"threshold {threshold:.2f}: cost per loan {cost(p_bad > threshold):.3f}")

# %%
# The curve of the cost over all thresholds shows that 1/6 is close to the best value, which was
# not used to find it.

import matplotlib.pyplot as plt

grid = np.linspace(0.02, 0.9, 89)
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(grid, [cost(p_bad > t) for t in grid], color="#0072B2")
ax.axvline(threshold, color="#D55E00", linestyle="--", label="1/6, from the costs")
ax.set(xlabel="refuse if p(bad) is above", ylabel="cost per loan")
ax.legend()
# %%
# Other class shares in production
# --------------------------------
# This table has 30 % bad loans. If only 10 % of the applicants are bad, the probabilities have to
# change by Bayes' rule. ``with_priors`` does that exactly, without training.

shifted = clf.model_.with_priors({"bad": 0.1, "good": 0.9}).model
print("mean p(bad) before", P[:, 0].mean().round(3))
print("mean p(bad) after ", shifted.predict_proba(X_test)[:, 0].mean().round(3))

# %%
# Class weights
# -------------
# ``class_weight="balanced"`` shifts the probabilities towards the rare class.
# ``correct_prior=True`` removes that shift again.

for correct in (False, True):
    weighted = GeometricMixtureClassifier(
        lift="linear",
        n_planes=1,
        class_weight="balanced",
        correct_prior=correct,
        random_state=0,
    ).fit(X, y)
    print(
        f"correct_prior={correct}: mean p(bad) {weighted.predict_proba(X_test)[:, 0].mean():.3f}, "
        f"true share {(y_test == 'bad').mean():.3f}"
    )
