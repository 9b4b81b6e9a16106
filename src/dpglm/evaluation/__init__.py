"""Evaluation: how well a public model does on private records, as paid releases with intervals."""

from .check import CellShare, Check, Checker, CheckPlan
from .metrics import LOG_LOSS_CUT, METRICS, EvaluationPlan, Evaluator
from .result import Bin, Estimate, Evaluation

__all__ = [
    "LOG_LOSS_CUT",
    "METRICS",
    "Bin",
    "CellShare",
    "Check",
    "CheckPlan",
    "Checker",
    "Estimate",
    "Evaluation",
    "EvaluationPlan",
    "Evaluator",
]
