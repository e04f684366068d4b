"""
Editing a model, and logging it
===============================

An expert looks at the model and wants a change. With geomix the change is exact, it can be
reviewed before it is made, and it is recorded in the model file.
"""

# %%
# A model to review
# -----------------

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import geomix
from geomix import GeometricMixtureClassifier

frame, labels = load_breast_cancer(return_X_y=True, as_frame=True)
labels = labels.map({0: "malignant", 1: "benign"})
X, X_test, y, y_test = train_test_split(
    frame, labels, test_size=0.4, stratify=labels, random_state=0
)
clf = GeometricMixtureClassifier(n_planes=3, lift="linear", random_state=0).fit(X, y)
model = clf.model_
print(model.explain_global(X_test, y_test))

# %%
# What if a plane is removed?
# ---------------------------
# ``without_plane`` returns a new model and the exact change of the class score, row by row. The
# old model stays as it is.

cards = [card for card in model.explain_global(X_test, y_test).cards if card.label == "malignant"]
idle = min(cards, key=lambda card: card.own_usage)
busy = max(cards, key=lambda card: card.own_usage)
for card in (idle, busy):
    edit = model.without_plane("malignant", card.plane)
    different = model.predict(X_test) != edit.model.predict(X_test)
    print(
        f"without the plane that leads on {card.own_usage:.0%} of the malignant rows: "
        f"class score changes by {edit.change(X_test).mean():.3f} on average, "
        f"{different.sum()} of {len(X_test)} predictions change"
    )

# %%
# Merge two planes
# ----------------

merged = model.merge_planes("benign", [0, 1])
print(f"accuracy before {(model.predict(X_test) == y_test).mean():.3f}")
print(f"accuracy after  {(merged.model.predict(X_test) == y_test).mean():.3f}")

# %%
# Other class shares
# ------------------
# In a screening programme only 2 % of the cases are malignant. The change is Bayes' rule, without
# training.

screening = model.with_priors({"malignant": 0.02, "benign": 0.98}).model
position = list(model.classes).index("malignant")
print(
    "mean p(malignant) in the clinic   ", model.predict_proba(X_test)[:, position].mean().round(3)
)
print(
    "mean p(malignant) in the screening",
    screening.predict_proba(X_test)[:, position].mean().round(3),
)

# %%
# The log
# -------
# Every edit is a record in ``model.edits``. Notes can be added, and everything is kept in the
# file.

import tempfile
from pathlib import Path

reviewed = screening.with_edit("note", text="shares of the screening programme, reviewed")
path = Path(tempfile.mkdtemp()) / "screening.geomix"
reviewed.save(path)
for record in geomix.load(path).edits:
    print(record)

# %%
# Before and after, as a picture
# ------------------------------

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.scatter(
    model.predict_proba(X_test)[:, position],
    screening.predict_proba(X_test)[:, position],
    s=12,
    color="#0072B2",
)
ax.plot([0, 1], [0, 1], color="#999999", linewidth=1)
ax.set(xlabel="p(malignant) before", ylabel="p(malignant) with the new shares")
