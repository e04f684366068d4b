"""
Coming from LightGBM
====================

Boosted trees are accurate and fast, and hard to explain. This tutorial fits both on the same
table and shows which question each of them answers.
"""

# %%
# The same table, two models
# --------------------------

import lightgbm as lgb
import pandas as pd
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

# LightGBM needs the type ``category``; geomix reads text as it is.
levels = {name: X[name].astype("category").dtype for name in X.select_dtypes(exclude="number")}
trees = lgb.LGBMClassifier(n_estimators=150, learning_rate=0.05, n_jobs=1, verbose=-1)
trees.fit(X.astype(levels), y)
clf = GeometricMixtureClassifier(random_state=0).fit(X, y)

P_trees, P = trees.predict_proba(X_test.astype(levels)), clf.predict_proba(X_test)
print(f"LightGBM: log-loss {log_loss(y_test, P_trees):.3f}, {trees.n_estimators_} trees")
print(f"geomix:   log-loss {log_loss(y_test, P):.3f}, {clf.n_planes_.sum()} planes")

# %%
# Are the probabilities right?
# ----------------------------
# geomix calibrates in ``fit``. Trees may need a second step.

import matplotlib.pyplot as plt

from geomix.plots import ReliabilityDisplay

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, probabilities, name in ((axes[0], P_trees, "LightGBM"), (axes[1], P, "geomix")):
    ReliabilityDisplay.from_predictions(y_test, probabilities, classes=clf.classes_).plot(ax)
    ax.set_title(name)

# %%
# Why this prediction?
# --------------------
# With trees one would compute SHAP values. A geomix model *is* a sum over columns, so the
# contributions are exact, and they are there for any two classes.

print(clf.model_.explain_local(X_test[:1])[0])

# %%
# What you know from LightGBM
# ---------------------------
#
# ======================================  =============================================
# LightGBM                                geomix
# ======================================  =============================================
# ``num_leaves``, ``n_estimators``        ``preset``, ``n_planes``, ``max_interactions``
# ``reg_lambda``                          ``l2``; chosen on held-out rows by default
# early stopping on a validation set      ``fit(X, y, X_val=..., y_val=...)``, or nothing
# ``monotone_constraints``                ``monotonic_cst``; several classes too
# ``categorical_feature``                 ``categorical_features``; text needs nothing
# ``class_weight``, ``scale_pos_weight``  ``class_weight`` with ``correct_prior=True``
# ``feature_importances_``                ``explain_global(X, y).importances``
# ``pred_contrib=True``                   ``explain_local(X).contributions``
# ``booster_.save_model``                 ``model.save``
# ======================================  =============================================
#
# When to stay with trees: strong interactions of three and more columns with plenty of rows, and
# nobody asks for reasons.
#
# One row at a time
# -----------------
# A scorer predicts single rows without the overhead of a frame, and threads can share it.

score = clf.model_.scorer()
person = X_test.iloc[0].to_dict()
print(score(person))
