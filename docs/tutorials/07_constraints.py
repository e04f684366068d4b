"""
Monotone and other constraints
==============================

A longer loan must never look safer to the model, whatever the rest of the application says.
geomix can guarantee that for every possible row.
"""

# %%
# Without a constraint
# --------------------

import pandas as pd
from sklearn.metrics import log_loss
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
settings = {"lift": "spline", "n_planes": 1, "random_state": 0}
free = GeometricMixtureClassifier(**settings).fit(X, y)

wanted = {"duration": {"bad": 1}, "credit_amount": {"bad": 1}, "age": {"bad": -1}}
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
# The two curves of ``duration``:

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, clf, colour in (("free", free, "#999999"), ("monotone", bound, "#0072B2")):
    curve = clf.model_.explain_global(X_test, y_test).curve("duration")
    ax.plot(curve.x, curve.values[0] - curve.values[1], label=name, color=colour)
ax.set(xlabel="duration in months", ylabel="contribution to the log-odds of bad")
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

few = ["checking_status", "duration", "credit_amount", "savings_status", "age"]
small = GeometricMixtureClassifier(
    lift="linear", n_planes=1, monotonic_cst=wanted, random_state=0
).fit(X[few], y)
P = small.predict_proba(X_test[few])
print(f"accuracy {small.score(X_test[few], y_test):.3f}, log-loss {log_loss(y_test, P):.3f}")
