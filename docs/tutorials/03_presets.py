"""
Presets and the price of readability
====================================

A model that can be read may be less accurate than one that cannot. How much less? This tutorial
measures it on two tables: one where readability is free, and one where it has a price.
"""

# %%
# Three presets
# -------------
# ``preset="readable"`` is the default. ``"accurate"`` looks for the lowest log-loss with larger
# models and ensembles. ``"fast"`` keeps the search short.

import time

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier


def compare(X, y, presets=("fast", "readable", "accurate")):
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    lines = []
    for preset in presets:
        start = time.process_time()
        clf = GeometricMixtureClassifier(preset=preset, random_state=0).fit(X, y)
        lines.append(
            {
                "preset": preset,
                "lift": clf.model_.lift.kind,
                "planes": int(clf.n_planes_.sum()),
                "accuracy": round(clf.score(X_test, y_test), 3),
                "log-loss": round(log_loss(y_test, clf.predict_proba(X_test)), 3),
                "seconds": round(time.process_time() - start, 1),
            }
        )
    return pd.DataFrame(lines)


# %%
# A table of people
# -----------------
# On most tables of people, money and measurements, the readable model is as good as the others.

credit = pd.read_csv("data/credit.csv")
people = compare(credit.drop(columns="risk"), credit["risk"])
print(people)

# %%
# A pure interaction
# ------------------
# The sign of a product: no single column says anything, only two together. This is the hardest
# case for a model that is a sum over columns.

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 4))
y = np.where(X[:, 0] * X[:, 1] > 0, "same sign", "other sign")
interaction = compare(X, y)
print(interaction)

# %%
# The price as a picture
# ----------------------

import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, table, title in ((axes[0], people, "credit"), (axes[1], interaction, "interaction")):
    ax.scatter(table["planes"], table["log-loss"], color="#0072B2")
    for _, line in table.iterrows():
        ax.annotate(
            line["preset"], (line["planes"], line["log-loss"]), (4, 4), textcoords="offset points"
        )
    ax.set(title=title, xlabel="planes", ylabel="log-loss on new rows", xscale="log")
    ax.margins(0.25)

# %%
# How to decide
# -------------
#
# - Start with the default. ``history_.choice`` says how far the next best candidate was behind.
# - If the accurate preset is much better, look for the reason. Often it is one interaction, which a
#   column of your own (a ratio, a difference) makes visible to the readable model.
# - If it stays much better, and nobody has to read the model, take it.
