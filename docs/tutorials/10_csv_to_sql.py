"""
From CSV to SQL in production
=============================

A table comes as a CSV file, and predictions are needed inside a database. This tutorial fits on
the command line, checks the model, exports it as one SQL query, and runs the query in DuckDB.
"""

# %%
# Fit on the command line
# -----------------------
# The same commands work in a shell: ``geomix fit credit.csv --target risk -o credit.geomix``.

import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())


def geomix_command(*arguments):
    command = [sys.executable, "-m", "geomix.cli", *map(str, arguments)]
    print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


geomix_command(
    "fit",
    "data/credit.csv",
    "--target",
    "risk",
    "-o",
    folder / "credit.geomix",
    "--test",
    "0.3",
    "--set",
    "lift=spline",
    "--set",
    "n_planes=1",
)

# %%
# What is in the file?
# --------------------

geomix_command("info", folder / "credit.geomix")

# %%
# Why was the first row predicted as it was?

geomix_command("explain", folder / "credit.geomix", "data/credit.csv", "--row", "1")

# %%
# Export to SQL
# -------------
# One SELECT with the model inside. It needs no Python and no extension.

import geomix
from geomix.export import to_sql

model = geomix.load(folder / "credit.geomix")
query = to_sql(model, "applications", keep=["id"], dialect="duckdb")
print(f"{len(query) / 1024:.0f} KB of SQL, which begins with:")
print(query[:300])

# %%
# Run it in the database
# ----------------------

import duckdb
import numpy as np
import pandas as pd

applications = pd.read_csv("data/credit.csv").drop(columns="risk")
applications.insert(0, "id", range(len(applications)))
database = duckdb.connect()
database.register("applications", applications)
answers = database.sql(query).df().sort_values("id")
answers.head()

# %%
# The probabilities are those of the model:

P = model.predict_proba(applications.drop(columns="id"))
difference = np.abs(answers["p_bad"].to_numpy() - P[:, 0]).max()
print(f"largest difference {difference:.1e}")

# %%
# The other ways out of Python
# ----------------------------
# C99 without dependencies, a JSON document, and ONNX (with ``geomix[onnx]``) contain the same
# tables.

from geomix.export import to_c, to_json

print(f"C    {len(to_c(model)) / 1024:.0f} KB")
print(f"JSON {len(to_json(model)) / 1024:.0f} KB")

# %%
# How the probabilities are distributed:

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.hist(answers["p_bad"], bins=25, color="#0072B2")
ax.set(xlabel="p(bad), computed by DuckDB", ylabel="applications")
