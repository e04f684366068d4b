"""Adult (census income) for the comparison with GAM and EBM: 5,000 rows, numbers and 0/1 columns.

The paper names the set and has no figures for it. GAM and EBM here take numbers without missing
cells, so each level that at least 5 % of the rows have is a column of zeros and ones. The table is
read from the folder of the suite's tables; where that is missing, the set is left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from geomix.datasets import Dataset

NAME = "adult"
ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT.parent / "shared" / "data" / "adult.parquet"
N_ROWS = 5000
FEWEST_OF_A_LEVEL = 0.05
# The weight of a row in the census, and a second coding of education_num.
LEFT_OUT = ("fnlwgt", "education")


def is_there() -> bool:
    return TABLE.exists()


def load() -> Dataset:
    import pandas as pd

    table = pd.read_parquet(TABLE).drop(columns=list(LEFT_OUT))
    table = table.sample(N_ROWS, random_state=0)
    y = (table.pop("target").to_numpy() == ">50K").astype(np.int64)
    columns = {}
    for name in table:
        if not isinstance(table[name].dtype, pd.CategoricalDtype):
            columns[str(name)] = table[name].to_numpy(dtype=np.float64)
            continue
        shares = table[name].value_counts(normalize=True)
        for level in shares.index[shares >= FEWEST_OF_A_LEVEL]:
            columns[f"{name}={level}"] = (table[name] == level).to_numpy(dtype=np.float64)
    X = np.column_stack(list(columns.values()))
    title = f"census income 1994, a sample: rows={N_ROWS}, levels of at least 5 % as columns"
    return Dataset(NAME, X, y, tuple(columns), ("<=50K", ">50K"), title)
