"""
My model has too many planes. What now?
=======================================

A model with many planes per class can be accurate and still be hard to read. This tutorial shows
four ways to a smaller model, and what each of them costs.
"""

# %%
# A model with too many planes
# ----------------------------
# Two moons, and eight planes per class. Six planes in all would do.

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier

X, codes = make_moons(3000, noise=0.22, random_state=0)
y = np.array(["upper", "lower"])[codes]
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

large = GeometricMixtureClassifier(n_planes=8, lift="linear", random_state=0).fit(X, y)
print(large.n_planes_, f"accuracy {large.score(X_test, y_test):.3f}")

# %%
# See which planes do something
# -----------------------------
# Findings name idle planes (GMX001) and near-duplicates (GMX002).

for finding in large.model_.explain_global(X_test, y_test).findings:
    print(finding)

# %%
from geomix.plots import UsageDisplay

UsageDisplay.from_estimator(large, X_test, y_test).plot()

# %%
# 1. Limit the number of planes
# -----------------------------
# The simplest way. Here is the price for one to eight planes per class.

from sklearn.metrics import log_loss

for n_planes in (1, 2, 3, 4, 8):
    clf = GeometricMixtureClassifier(n_planes=n_planes, lift="linear", random_state=0).fit(X, y)
    P = clf.predict_proba(X_test)
    print(
        f"{n_planes} planes per class: accuracy {clf.score(X_test, y_test):.3f}, "
        f"log-loss {log_loss(y_test, P):.3f}"
    )

# %%
# ``max_planes=3`` limits the search instead, and lets ``fit`` choose a number up to three.

chosen = GeometricMixtureClassifier(max_planes=3, lift="linear", random_state=0).fit(X, y)
print(chosen.n_planes_, f"accuracy {chosen.score(X_test, y_test):.3f}")

# %%
# 2. Take curves instead of more planes
# -------------------------------------
# One plane of curves can replace several straight ones. It is an additive model: one curve per
# column.

curves = GeometricMixtureClassifier(n_planes=1, lift="spline", random_state=0).fit(X, y)
print(curves.n_planes_, f"accuracy {curves.score(X_test, y_test):.3f}")

# %%
# 3. Remove idle planes
# ---------------------
# ``without_plane`` gives a new model and the exact change. An idle plane can go at no cost.

from geomix.explain.diagnostics import plane_usage

model = large.model_
for label in model.classes:
    while True:
        c = list(model.classes).index(label)
        start, stop = model.planes.class_start[c : c + 2]
        usage = plane_usage(model, X, y)[start:stop]
        if len(usage) == 1 or usage.min() >= 0.02:
            break
        model = model.without_plane(label, int(usage.argmin())).model

print("planes per class:", np.diff(model.planes.class_start))
print(f"accuracy {(model.predict(X_test) == y_test).mean():.3f}")

# %%
# 4. Merge similar planes
# -----------------------
# ``merge_planes`` makes one plane of several. Merging near-duplicates is free; merging planes that
# stand for different regions is not. Here is every pair of planes of one class:

from itertools import combinations

c = list(model.classes).index("lower")
for pair in combinations(range(np.diff(model.planes.class_start)[c]), 2):
    edit = model.merge_planes("lower", list(pair))
    accuracy = (edit.model.predict(X_test) == y_test).mean()
    print(f"merge planes {pair}: accuracy {accuracy:.3f}")

# %%
# The regions of the pruned model, coloured by the plane that is responsible:

from geomix.plots import RegionDisplay

RegionDisplay.from_model(model, X_test[:400], y_test[:400]).plot(by_plane=True)
