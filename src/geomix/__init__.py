"""geomix: the Geometric Mixture Classifier. Every class a soft union of readable regions."""

from geomix.errors import DataQualityWarning, InvalidParameterError, SchemaError
from geomix.estimator import GeometricMixtureClassifier
from geomix.files import fit_files
from geomix.model import GeometricMixture
from geomix.recipe import Recipe
from geomix.versions import show_versions

__version__ = "0.1.0"

__all__ = [
    "DataQualityWarning",
    "GeometricMixture",
    "GeometricMixtureClassifier",
    "InvalidParameterError",
    "Recipe",
    "SchemaError",
    "__version__",
    "fit_files",
    "show_versions",
]
