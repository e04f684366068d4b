"""Preparations of raw columns that several peers share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

CATEGORIES = make_column_selector(dtype_include="category")
NUMBERS = make_column_selector(dtype_exclude="category")


def standardised(dtype: Any = np.float64) -> Any:
    """Numbers: median for missing, an indicator of it, mean 0 and deviation 1; levels: one-hot.

    A missing category is a level of its own; a level that training lacks is a row of zeros.
    """
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=dtype)
    return make_column_transformer((numbers, NUMBERS), (levels, CATEGORIES))


def ordinal() -> Any:
    """Numbers as they are, levels as codes, for trees that split on NaN themselves."""
    levels = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_column_transformer(("passthrough", NUMBERS), (levels, CATEGORIES))
