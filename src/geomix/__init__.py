"""geomix: the Geometric Mixture Classifier. Every class a soft union of readable regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geomix.errors import (
        DataQualityWarning,
        InvalidParameterError,
        ModelFileError,
        ModelVersionError,
        SchemaError,
        TableFileError,
    )
    from geomix.estimator import GeometricMixtureClassifier
    from geomix.explain.editing import merge
    from geomix.hierarchy.classifier import HierarchicalClassifier
    from geomix.model import GeometricMixture
    from geomix.modelfile.saving import load
    from geomix.out_of_core.files import fit_files
    from geomix.semi_supervised.classifier import SemiSupervisedClassifier
    from geomix.table.check import check_table
    from geomix.training.recipe import Recipe
    from geomix.versions import show_versions

__version__ = "0.2.0"

__all__ = [
    "DataQualityWarning",
    "GeometricMixture",
    "GeometricMixtureClassifier",
    "HierarchicalClassifier",
    "InvalidParameterError",
    "ModelFileError",
    "ModelVersionError",
    "Recipe",
    "SchemaError",
    "SemiSupervisedClassifier",
    "TableFileError",
    "__version__",
    "check_table",
    "fit_files",
    "load",
    "merge",
    "show_versions",
]

# Where each name lives. They are imported when they are asked for: NumPy, SciPy and scikit-learn
# take a second, and `geomix --help` or a scoring service that only loads a model need not wait.
_HOMES = {
    "DataQualityWarning": "errors",
    "GeometricMixture": "model",
    "GeometricMixtureClassifier": "estimator",
    "HierarchicalClassifier": "hierarchy.classifier",
    "InvalidParameterError": "errors",
    "ModelFileError": "errors",
    "ModelVersionError": "errors",
    "Recipe": "training.recipe",
    "SchemaError": "errors",
    "SemiSupervisedClassifier": "semi_supervised.classifier",
    "TableFileError": "errors",
    "check_table": "table.check",
    "fit_files": "out_of_core.files",
    "load": "modelfile.saving",
    "merge": "explain.editing",
    "show_versions": "versions",
}


def __getattr__(name: str) -> Any:
    import importlib.util

    if name in _HOMES:
        found = getattr(importlib.import_module(f"geomix.{_HOMES[name]}"), name)
        globals()[name] = found
        return found
    if not name.startswith("_") and importlib.util.find_spec(f"geomix.{name}") is not None:
        return importlib.import_module(f"geomix.{name}")
    raise AttributeError(f"module 'geomix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
