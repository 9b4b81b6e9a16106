"""Evaluation: how well a public model does on private records, as paid releases with intervals."""

from .evaluator import METRICS, EvaluationPlan, Evaluator
from .result import Bin, Estimate, Evaluation

__all__ = ["METRICS", "Bin", "Estimate", "Evaluation", "EvaluationPlan", "Evaluator"]
