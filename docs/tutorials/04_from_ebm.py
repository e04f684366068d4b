"""
Coming from EBM
===============

An Explainable Boosting Machine and a geomix model with one spline plane per class have the same
form: a sum of one curve per column. This tutorial fits both on the same table, finds the
counterparts, and shows what geomix adds.
"""

# %%
# The same table, two models
# --------------------------
# EBM without pairs and with few bags, so that this page builds quickly.

import warnings

import numpy as np
import pandas as pd
from interpret.glassbox import ExplainableBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier

adult = pd.read_csv("data/adult.csv.gz")
X, X_test, y, y_test = train_test_split(
    adult.drop(columns="income"),
    adult["income"],
    test_size=0.3,
    stratify=adult["income"],
    random_state=0,
)

warnings.simplefilter("ignore")
ebm = ExplainableBoostingClassifier(interactions=0, outer_bags=2, n_jobs=1, random_state=0)
ebm.fit(X, y)
clf = GeometricMixtureClassifier(n_planes=1, lift="spline", random_state=0).fit(X, y)

for name, fitted in (("EBM", ebm), ("geomix", clf)):
    P = fitted.predict_proba(X_test)
    print(
        f"{name:7s} accuracy {fitted.score(X_test, y_test):.3f}, log-loss {log_loss(y_test, P):.3f}"
    )

# %%
# One curve, seen by both
# -----------------------
# EBM's score of ``age`` and the curve of geomix: the difference between the planes of the two
# classes, which is the contribution to the log-odds.

import matplotlib.pyplot as plt

curve = clf.model_.explain_global(X_test, y_test).curve("age")
log_odds = curve.values[1] - curve.values[0]

position = list(X.columns).index("age")
bins = ebm.bins_[position][0]
scores = ebm.term_scores_[position][1:-1]

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.step(np.r_[X["age"].min(), bins], scores, where="post", label="EBM", color="#999999")
grid = np.asarray(curve.x, dtype=float)
centre = np.interp(X["age"], grid, log_odds).mean()
ax.plot(grid, log_odds - centre, label="geomix", color="#0072B2")
ax.set(xlabel="age", ylabel="contribution to the log-odds")
ax.legend()
# %%
# The counterparts
# ----------------
#
# =====================================  ==========================================
# EBM                                    geomix
# =====================================  ==========================================
# ``explain_global()``                   ``model.explain_global(X, y)``
# ``explain_local(X, y)``                ``model.explain_local(X)``
# ``term_importances()``                 ``explain_global(X, y).importances``
# ``term_scores_``                       ``explain_global(X, y).curve(name).values``
# ``interactions=10``                    ``max_interactions=10``, or more planes
# ``monotone_constraints=[1, 0, ...]``   ``monotonic_cst=[1, 0, ...]``
# ``outer_bags=14``                      not needed for calibration
# ``show(explanation)``                  ``model.report(X, y, path)``
# =====================================  ==========================================
#
# What geomix adds
# ----------------
# **Several planes.** Each plane of a class has curves of its own. A column can count in one
# region and not in another, which no single set of curves can express.

several = GeometricMixtureClassifier(n_planes=2, lift="spline", random_state=0).fit(X, y)
P = several.predict_proba(X_test)
print(
    f"two planes: accuracy {several.score(X_test, y_test):.3f}, log-loss {log_loss(y_test, P):.3f}"
)

# %%
# **Exact geometry.** Counterfactuals with a proved lower bound, certified radii, thresholds.

row = X_test[:1]
print(clf.model_.counterfactual(row, immutable=["age", "sex", "race"]))

# %%
print(clf.model_.thresholds(row, "hours_per_week"))
