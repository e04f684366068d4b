"""
A readable model, from table to report
======================================

Who earns more than 50,000 dollars a year? This tutorial fits a model on census data, looks at
what it has learned, explains single predictions and writes a report for others.
"""

# %%
# The table
# ---------
# 5,000 people, 13 columns: numbers, categories and missing cells side by side. Nothing has to be
# encoded or imputed.

import pandas as pd
from sklearn.model_selection import train_test_split

adult = pd.read_csv("data/adult.csv.gz")
X, X_test, y, y_test = train_test_split(
    adult.drop(columns="income"),
    adult["income"],
    test_size=0.3,
    stratify=adult["income"],
    random_state=0,
)
X.head(3).T

# %%
# The fit
# -------
# ``fit`` chooses the kind of planes, their number and the penalty on held-out rows.
# ``history_.choice`` gives the reason.

from sklearn.metrics import log_loss

from geomix import GeometricMixtureClassifier

clf = GeometricMixtureClassifier(random_state=0).fit(X, y)
print(clf.history_.choice)
print(f"accuracy {clf.score(X_test, y_test):.3f}")
print(f"log-loss {log_loss(y_test, clf.predict_proba(X_test)):.3f}")

# %%
# What has it learned?
# --------------------
# A plane card for each plane, and the importance of each column. Pass rows that training has not
# seen.

model = clf.model_
explanation = model.explain_global(X_test, y_test)
explanation.to_frame()[["label", "plane", "n_rows", "purity", "confidence"]]

# %%
# *Purity*: of the rows that a plane answers for, the share that belongs to its class;
# *confidence* is the mean probability there. The two should agree. And this is how much each
# column contributes on average:

pd.Series(explanation.importances, explanation.columns).sort_values(ascending=False).round(
    2
).to_frame("mean contribution")

# %%
# A picture of the plane of the class ``>50K``: how much each value of a column raises or lowers
# its score.

from geomix.plots import PlaneCardDisplay

PlaneCardDisplay.from_estimator(clf, ">50K", 0, X_test, y_test).plot()

# %%
# Why this prediction?
# --------------------
# The contributions of the columns add up exactly to the margin, the log of the ratio of the two
# probabilities.

row = X_test[:1]
why = model.explain_local(row)
print(why[0])

# %%
parts = why.contributions.sum() + why.bias.sum() + why.pooling.sum()
print(f"sum of the parts {parts:.6f}, margin {why.margin[0]:.6f}")

# %%
# What would change it?
# ---------------------
# The nearest person with the other prediction, if age, sex and race stay as they are.

print(model.counterfactual(row, immutable=["age", "sex", "race", "native_country"]))

# %%
# Can the probabilities be trusted?
# ---------------------------------
# Of the people with a probability of 80 %, about 80 % should belong to the class.

from geomix.plots import ReliabilityDisplay

ReliabilityDisplay.from_estimator(clf, X_test, y_test).plot()

# %%
# The report
# ----------
# One HTML file with all of this, in which the reader can change a row and see the prediction
# change. It needs no server and no network. ``n_rows=0`` would leave out the rows of the table.

import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
model.report(X_test, y_test, folder / "report.html", title="Income above 50,000 dollars")
print(f"{(folder / 'report.html').stat().st_size / 1024:.0f} KB")

# %%
# The model itself is a file of a few KB that loads without running any code.

import geomix

model.save(folder / "income.geomix")
loaded = geomix.load(folder / "income.geomix")
print((loaded.predict_proba(X_test) == model.predict_proba(X_test)).all())
