"""Scores: bounded numbers that a record's target and a public model's prediction give."""

from .accuracy import Accuracy
from .base import Score
from .cells import CellsOf, ClassesByMargin, Reliability, places
from .errors import AbsoluteError, SquaredError, predicted
from .influence import DeterminationInfluence, RankInfluence
from .log_loss import LogLoss
from .model import PublicModel
from .target import TargetValue

__all__ = [
    "AbsoluteError", "Accuracy", "CellsOf", "ClassesByMargin", "DeterminationInfluence", "LogLoss",
    "PublicModel", "RankInfluence", "Reliability", "Score", "SquaredError", "TargetValue", "places",
    "predicted",
]  # fmt: skip
