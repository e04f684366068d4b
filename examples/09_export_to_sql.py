"""The model as one SQL query, run by SQLite, without geomix."""

import sqlite3

from sklearn.datasets import load_iris

from geomix import GeometricMixtureClassifier
from geomix.export import to_sql

X, y = load_iris(return_X_y=True, as_frame=True)
y = y.map({0: "setosa", 1: "versicolor", 2: "virginica"})
model = GeometricMixtureClassifier(n_planes=1, lift="linear", random_state=0).fit(X, y).model_

database = sqlite3.connect(":memory:")
X.to_sql("flowers", database)
query = to_sql(model, "flowers", keep=["index"], dialect="sqlite")

print(f"{len(query)} characters of SQL")
for answer in database.execute(query + " LIMIT 3"):
    print(answer)
