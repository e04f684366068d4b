"""
Presets and the price of readability
====================================

A model that can be read may be less accurate than one that cannot. How much less? This tutorial
measures it on two tables: one where readability is free, and one where it has a price.
"""

# %%
# Three presets
# -------------
# ``preset="readable"`` is the default: linear or spline planes, a few per class, and at most ten
# pairs of columns. ``"accurate"`` also tries many planes, kernels and ensembles. ``"fast"`` does
# not search: one spline plane per class with fixed settings.
#
# A table of people
# -----------------
# ``compare_presets`` cross-validates all three on the same folds.

import pandas as pd

from geomix import GeometricMixtureClassifier

credit = pd.read_csv("data/credit.csv")
X, y = credit.drop(columns="risk"), credit["risk"]
people = GeometricMixtureClassifier(random_state=0).compare_presets(X, y, cv=3)
print(people)

# %%
# *Numbers* counts the weights and biases of a model: what one would have to look at to read all
# of it. On most tables of people, money and measurements the readable model is as good as the
# others, within the standard errors.
#
# Two spirals
# -----------
# Two spirals wind around each other, twice. A sum of one curve per column cannot follow them, a
# few planes follow them in part, and many planes or a kernel follow them everywhere. Here
# readability has a price.

from geomix.datasets import load

spirals = load("spirals")
X_spirals, y_spirals = spirals.X[:900], spirals.y[:900]
curved = GeometricMixtureClassifier(random_state=0).compare_presets(X_spirals, y_spirals, cv=3)
print(curved)

# %%
# The price as a picture
# ----------------------

import matplotlib.pyplot as plt

from geomix.plots import PresetDisplay

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, comparison, title in ((axes[0], people, "credit"), (axes[1], curved, "spirals")):
    PresetDisplay.from_comparison(comparison).plot(ax)
    ax.set_title(title)

# %%
# How to decide
# -------------
#
# - Start with the default. ``history_.choice`` shows how the candidates compared.
# - If the accurate preset is much better, look for the reason. Often it is one interaction, which a
#   column of your own (a ratio, a difference) makes visible to the readable model.
# - If it stays much better, and nobody has to read the model, take it.
#
# The choice in detail
# --------------------

clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
print(clf.history_.choice)
