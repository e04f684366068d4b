"""geomix: the Geometric Mixture Classifier. Every class a soft union of readable regions."""

from geomix.editing import merge
from geomix.errors import (
    DataQualityWarning,
    InvalidParameterError,
    ModelFileError,
    ModelVersionError,
    SchemaError,
)
from geomix.estimator import GeometricMixtureClassifier
from geomix.model import GeometricMixture
from geomix.modelfile import load
from geomix.recipe import Recipe
from geomix.versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "DataQualityWarning",
    "GeometricMixture",
    "GeometricMixtureClassifier",
    "InvalidParameterError",
    "ModelFileError",
    "ModelVersionError",
    "Recipe",
    "SchemaError",
    "__version__",
    "load",
    "merge",
    "show_versions",
]
