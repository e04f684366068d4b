"""skops: the types of a saved estimator that a loader may trust.

``skops.io`` refuses types that it does not know until they are named. These are all that a fitted
``GeometricMixtureClassifier`` consists of besides NumPy's and scikit-learn's. They are plain
values: loading one runs none of its methods.

    skops.io.load("clf.skops", trusted=geomix.skops.TRUSTED_TYPES)
    mlflow.sklearn.log_model(clf, name="model", skops_trusted_types=geomix.skops.TRUSTED_TYPES)
"""

from __future__ import annotations

#: Names of all types of a fitted estimator, for ``trusted`` of skops.
TRUSTED_TYPES = [
    "geomix.core.adam.AdamState",
    "geomix.core.feature_map.FeatureMap",
    "geomix.core.lifts.FourierLift",
    "geomix.core.lifts.IdentityLift",
    "geomix.core.lifts.Standardize",
    "geomix.core.planes.Planes",
    "geomix.core.spline.SplineLift",
    "geomix.core.spline_parts.CurvePart",
    "geomix.core.spline_parts.LevelPart",
    "geomix.core.spline_parts.PairPart",
    "geomix.estimator.GeometricMixtureClassifier",
    "geomix.model.GeometricMixture",
    "geomix.table.check.TableCheck",
    "geomix.table.suspicions.Finding",
    "geomix.table.one_hot.Expand",
    "geomix.table.schema.Column",
    "geomix.table.schema.Schema",
    "geomix.training.adam_epochs.StreamState",
    "geomix.training.choice.Choice",
    "geomix.training.choice.FamilyResult",
    "geomix.training.history.History",
    "geomix.training.history.Record",
    "geomix.training.history.Trial",
    "geomix.training.recipe.Recipe",
    "geomix.training.state.TrainingState",
]
