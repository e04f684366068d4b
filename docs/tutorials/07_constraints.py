"""
Monotone and other constraints
==============================

More education must never lower the predicted probability of a high income, whatever the rest of the
row looks like. geomix can guarantee that for every possible row.
"""

# %%
# Without a constraint
# --------------------
# ``check_monotone`` proves whether the wanted directions hold for every row, finds a row where
# they do not, or says that it cannot tell. Without a constraint they may hold, but nothing
# guarantees it.

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
settings = {"lift": "spline", "n_planes": 1, "random_state": 0}
free = GeometricMixtureClassifier(**settings).fit(X, y)

wanted = {name: {">50K": 1} for name in ("education_num", "hours_per_week", "capital_gain")}
print(free.model_.check_monotone(wanted, X_test))

# %%
# With the constraint
# -------------------
# ``monotonic_cst`` takes a dict by column and class: 1 for rising, -1 for falling. For two
# classes a list with one sign per column works too, as in scikit-learn.

bound = GeometricMixtureClassifier(monotonic_cst=wanted, **settings).fit(X, y)
print(bound.model_.check_monotone(wanted))

# %%
# What does it cost?

for name, clf in (("free", free), ("monotone", bound)):
    P = clf.predict_proba(X_test)
    print(f"{name:9s} accuracy {clf.score(X_test, y_test):.3f}, log-loss {log_loss(y_test, P):.3f}")

# %%
# The two curves of ``hours_per_week``:

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, clf, colour in (("free", free, "#999999"), ("monotone", bound, "#0072B2")):
    curve = clf.model_.explain_global(X_test, y_test).curve("hours_per_week")
    ax.plot(curve.x, curve.values[1] - curve.values[0], label=name, color=colour)
ax.set(xlabel="hours per week", ylabel="contribution to the log-odds")
ax.legend()
# %%
# Other constraints
# -----------------
#
# - *Only these columns*: drop the others from the table.
# - *Straight lines only*: ``lift="linear"``.
# - *One curve per column and nothing else*: ``n_planes=1, max_interactions=0``.
# - *At most three regions per class*: ``max_planes=3``.
# - *A category must not count*: drop it, then check with ``explain_global(...).importances`` that
#   no other column took its place.
#
# Here is the most restricted model: one straight plane per class over five columns.

few = ["age", "education_num", "hours_per_week", "capital_gain", "marital_status"]
small = GeometricMixtureClassifier(
    lift="linear", n_planes=1, monotonic_cst=wanted, random_state=0
).fit(X[few], y)
P = small.predict_proba(X_test[few])
print(f"accuracy {small.score(X_test[few], y_test):.3f}, log-loss {log_loss(y_test, P):.3f}")
