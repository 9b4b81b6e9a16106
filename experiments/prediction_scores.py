"""Scores of predictions on held-out rows: right ones, ranks, probabilities and their calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from inference_tables import Vector
from prediction_tables import Table, score
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

LABELS, TARGETS = ("accuracy", "AUC", "log loss"), ("R²",)
CALIBRATION = ("slope", "intercept", "calibration error")
_BINS = 10
_CERTAIN = 1e-12  # a probability this near to 0 or 1 counts as this near


def scores(model: Any, table: Table, X: Any, y: Vector) -> dict[str, float]:
    """R² of predictions cut to the declared range; of labels accuracy, AUC, log loss and calibration."""
    if table.target is not None:
        return {"R²": score(model, table, X, y)}
    happens, p = y > 0, np.clip(model.predict_proba(X)[:, 1], _CERTAIN, 1 - _CERTAIN)
    slope, intercept = reliability(happens, p)
    return {
        "accuracy": score(model, table, X, y), "AUC": float(roc_auc_score(happens, p)),
        "log loss": float(log_loss(happens, p)),
        "slope": slope, "intercept": intercept, "calibration error": calibration_error(happens, p),
    }  # fmt: skip


def reliability(happens: Vector, p: Vector) -> tuple[float, float]:
    """Slope and intercept of the logistic regression of labels on the logits of their probabilities.

    They are 1 and 0 for probabilities that are right; a slope below 1 says that they are too certain.
    """
    line = LogisticRegression(C=np.inf, max_iter=1000, tol=1e-8).fit(logit(p)[:, None], happens)
    return float(line.coef_[0, 0]), float(line.intercept_[0])


def calibration_error(happens: Vector, p: Vector) -> float:
    """Mean distance of the mean probability from the share of the label, over ten bins of equal count."""
    bins = np.array_split(np.argsort(p, kind="stable"), _BINS)
    gaps = [len(rows) * abs(p[rows].mean() - happens[rows].mean()) for rows in bins if len(rows)]
    return float(np.sum(gaps) / len(p))
