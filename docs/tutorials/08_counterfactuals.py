"""
Counterfactuals for a refused applicant
=======================================

An application was refused. What is the smallest change that would have led to another decision?
The answer has to respect what a person can change, and it has to be true of the model itself.
"""

# %%
# The model
# ---------

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
clf = GeometricMixtureClassifier(lift="spline", n_planes=1, random_state=0).fit(X, y)
model = clf.model_

p_bad = model.predict_proba(X_test)[:, 0]
refused = X_test[(p_bad > 0.6) & (p_bad < 0.8)]
applicant = refused.iloc[[0]]
print(f"p(bad) = {model.predict_proba(applicant)[0, 0]:.2f}")
applicant.T

# %%
# Why was it refused?
# -------------------

print(model.explain_local(applicant)[0])

# %%
# A near row with the other prediction
# ------------------------------------
# Without any restriction, it may ask for the impossible.

print(model.counterfactual(applicant, target="good"))

# %%
# What the applicant can change
# -----------------------------
# Age and history cannot be changed, savings can only grow, and amount and duration have limits.

FIXED = [
    "age",
    "personal_status",
    "foreign_worker",
    "credit_history",
    "employment",
    "job",
    "residence_since",
    "existing_credits",
    "num_dependents",
    "purpose",
    "property",
    "housing",
    "other_payment_plans",
    "own_telephone",
    "checking_status",
]
found = model.counterfactual(
    applicant,
    target="good",
    immutable=FIXED,
    decrease_only=["credit_amount", "duration"],
    ranges={"duration": (6, 60)},
)
print(found)

# %%
# The result is checked against the model: the new row really is predicted as good. And no allowed
# row is nearer than ``lower_bound``.

print(found.status, found.distance, found.lower_bound)

# %%
# Few changes
# -----------
# People prefer one or two changes to many small ones.

print(
    model.counterfactual(
        applicant, target="good", immutable=FIXED, decrease_only=["credit_amount"], sparse=2
    )
)

# %%
# Along one column
# ----------------
# ``thresholds`` lists all values of one column at which the decision changes.

print(model.thresholds(applicant, "duration"))

# %%
# How stable is a decision?
# -------------------------
# ``certify`` proves a radius within which no change of numbers changes the decision.

from geomix.plots import CounterfactualDisplay

print(model.certify(applicant))
CounterfactualDisplay.from_estimator(clf, applicant, "good").plot()
