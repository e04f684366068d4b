"""
Larger than memory, and Dask
============================

When the rows do not fit into memory, geomix reads files block by block, or uses the workers of a
Dask cluster. The result is an ordinary model. This tutorial uses a small table so that it runs
anywhere; the calls are the same for a large one.
"""

# %%
# Files
# -----
# 60,000 rows in six Parquet files.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

import geomix

X, y = make_classification(
    60_000,
    n_features=12,
    n_informative=6,
    n_classes=3,
    n_clusters_per_class=2,
    random_state=0,
)
frame = pd.DataFrame(X.astype("float32"), columns=[f"c{j}" for j in range(X.shape[1])])
frame["y"] = np.array(["a", "b", "c"])[y]
train, test = frame[:50_000], frame[50_000:]

folder = Path(tempfile.mkdtemp())
for i in range(5):
    train[i::5].to_parquet(folder / f"part-{i}.parquet")

# %%
# ``fit_files`` surveys all rows once, chooses the settings on a sample, and trains on all rows.

clf = geomix.fit_files(
    str(folder / "*.parquet"), target="y", lift="linear", n_planes=2, random_state=0
)
X_test, y_test = test.drop(columns="y"), test["y"]
print(f"accuracy {clf.score(X_test, y_test):.3f}")
print(clf.history_.notes)

# %%
# CSV works too, also compressed, and on the command line: ``geomix fit 'data/*.csv.gz' --target y
# -o m.geomix``.
#
# A stream
# --------
# Batches that arrive one after another. The first one decides the settings, so it should be large
# and mixed.

from geomix import GeometricMixtureClassifier

stream = GeometricMixtureClassifier(lift="linear", n_planes=2, random_state=0)
accuracies = []
for start in range(0, 50_000, 10_000):
    batch = train[start : start + 10_000]
    stream.partial_fit(batch.drop(columns="y"), batch["y"], classes=["a", "b", "c"])
    accuracies.append(stream.score(X_test, y_test))
print(np.round(accuracies, 3))

# %%
# Dask
# ----
# Two threads in this process stand in for a cluster.

import dask.dataframe as dd
from dask.distributed import Client

from geomix.dask import DaskGeometricMixtureClassifier

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)
rows = dd.from_pandas(train, npartitions=4)
distributed = DaskGeometricMixtureClassifier(
    lift="linear", n_planes=2, random_state=0, client=client
)
distributed.fit(rows.drop(columns="y"), rows["y"])
local = distributed.to_local()
client.close()
print(f"accuracy {local.score(X_test, y_test):.3f}")

# %%
# Files and cluster are trained by the same steps. The samples that choose the start differ, because
# the order of the rows differs, so the models agree on nearly all rows but not on all.

same = (clf.predict(X_test) == local.predict(X_test)).mean()
print(f"equal predictions: {same:.1%}")

# %%
from geomix.plots import ReliabilityDisplay

ReliabilityDisplay.from_estimator(clf, X_test, y_test).plot()
