"""Support vector machines: probabilities by Platt scaling, decisions by the machine itself."""

from __future__ import annotations

from typing import Any

from sklearn.calibration import CalibratedClassifierCV

from paper.models import OneRow


def with_probabilities(machine: Any) -> Any:
    """One machine fitted on all rows, its sigmoids on scores of rows that it had not seen."""
    return CalibratedClassifierCV(machine, ensemble=False, cv=5)


def machine_of(model: Any) -> tuple[Any, Any]:
    scaler, calibrated = (step for _, step in model.steps)
    return scaler, calibrated.calibrated_classifiers_[0].estimator


def decide(model: Any, X: Any) -> Any:
    """The machine's own decision, which Platt scaling may overturn."""
    scaler, machine = machine_of(model)
    return machine.predict(scaler.transform(X))


def paths(model: Any) -> dict[str, OneRow]:
    scaler, machine = machine_of(model)
    return {
        "pipeline.predict_proba": OneRow(model.predict_proba),
        "decision_function, row scaled before": OneRow(
            machine.decision_function, prepared=scaler.transform
        ),
    }
