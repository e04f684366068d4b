"""A table with text and missing cells, used as it is."""

from pathlib import Path

import pandas as pd
from sklearn.model_selection import train_test_split

from geomix import GeometricMixtureClassifier

DATA = Path(__file__).parents[1] / "docs" / "tutorials" / "data"

adult = pd.read_csv(DATA / "adult.csv.gz")
print(f"{adult.isna().sum().sum()} missing cells")
train, test = train_test_split(adult, random_state=0)

clf = GeometricMixtureClassifier(n_planes=1, lift="spline", random_state=0)
clf.fit(train.drop(columns="income"), train["income"])

print(f"accuracy {clf.score(test.drop(columns='income'), test['income']):.3f}")
for column in clf.model_.schema.columns[:3]:
    print(column.name, column.levels)
