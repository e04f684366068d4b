"""The paper's own figures, as they are carried in the package."""

from __future__ import annotations

import pytest

from geomix.datasets import NAMES
from geomix.paper import BY_MODEL, TABLES, reported, reported_usage

MODELS = {"GMC", "RBF-SVM", "LinSVM", "LR", "k-NN", "RF", "XGBoost", "LightGBM", "MLP"}
APPENDIX = {"moons", "circles", "wine", "wdbc", "digits"}


# Read off the printed tables: one cell of each.
@pytest.mark.parametrize(
    ("table", "dataset", "model", "mean", "std"),
    [
        ("accuracy", "wdbc", "RBF-SVM", 0.912, 0.015),
        ("macro_f1", "aniso", "GMC", 0.798, 0.005),
        ("train_seconds", "digits", "k-NN", 0.85, None),
        ("latency_us", "iris", "RF", 20.8, None),
        ("ece", "wine", "k-NN", 0.267, None),
        ("gam_ebm_accuracy", "digits", "EBM", 0.952, 0.005),
        ("max_responsibility", "wdbc", "GMC", 0.972, 0.020),
        ("responsibility_entropy", "circles", "GMC", 0.035, 0.023),
    ],
)
def test_a_cell_is_the_printed_one(table, dataset, model, mean, std):
    found = reported(table)[dataset, model]
    assert (found.mean, found.std) == (mean, std)


@pytest.mark.parametrize("table", [name for name in BY_MODEL if name != "gam_ebm_accuracy"])
def test_the_large_tables_are_complete(table):
    assert set(reported(table)) == {(name, model) for name in NAMES for model in MODELS}


def test_the_small_tables_are_complete():
    assert {name for name, _ in reported("gam_ebm_accuracy")} == APPENDIX
    assert {model for _, model in reported("gam_ebm_accuracy")} == {"GMC", "GAM", "EBM"}
    assert {name for name, _ in reported("max_responsibility")} == APPENDIX


@pytest.mark.parametrize("dataset", sorted(APPENDIX))
def test_the_planes_of_a_class_share_all_rows(dataset):
    usage = reported_usage(dataset)
    assert len(usage) == {"digits": 10, "wine": 3}.get(dataset, 2)
    for shares in usage.values():
        assert sum(shares) == pytest.approx(1.0, abs=0.0021)  # rounded to a thousandth each


def test_a_table_that_the_paper_lacks_is_named():
    with pytest.raises(ValueError, match="Got table='auc'; expected one of 'accuracy'"):
        reported("auc")
    assert reported_usage("iris") == {}
    assert len(TABLES) == 8
