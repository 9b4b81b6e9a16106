"""From metrics to a plan, and from a plan to scores: a curator holds the records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..arrays import Vector
from ..curator import Curator
from ..errors import UnsupportedProblem
from ..inference import LEVEL
from ..mechanisms import Gaussian
from ..plan import Plan, Releasable, Release
from ..privacy import Budget
from ..queries import Query
from .metrics import (
    AbsoluteErrorMetric,
    AccuracyMetric,
    CalibrationMetric,
    DeterminationMetric,
    LogLossMetric,
    Metric,
    RankingMetric,
    Setting,
    SquaredErrorMetric,
)
from .result import Estimate

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        AccuracyMetric(),
        LogLossMetric(),
        RankingMetric(),
        CalibrationMetric(),
        DeterminationMetric(),
        SquaredErrorMetric(),
        AbsoluteErrorMetric(),
    )
}
"""All metrics by name."""


LOG_LOSS_CUT = math.log(100)
"""By default a probability below one percent counts as one percent in the log loss."""


@dataclass(frozen=True)
class EvaluationPlan(Plan):
    """What an evaluation will release. ``metrics`` has the names of all, with commas between them."""

    solver: ClassVar[str] = "evaluation"
    may_release: ClassVar[Releasable] = {
        stage.name: (Gaussian,) for metric in METRICS.values() for stage in metric.stages
    }

    metrics: str
    log_loss_cut: float


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Scores of one public model by some metrics.

    Parameters
    ----------
    metrics : tuple of str
    setting : Setting
    level : float
        Probability with which each interval covers its score.
    """

    metrics: tuple[str, ...]
    setting: Setting
    level: float = 0.95

    def __post_init__(self) -> None:
        LEVEL("level", self.level)
        unknown = [name for name in self.metrics if name not in METRICS]
        if unknown or not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError(
                f"metric must be one or several of {list(METRICS)}, each once, got {list(self.metrics)}"
            )
        for name in self.metrics:
            if not METRICS[name].serves(self.setting):
                raise UnsupportedProblem(
                    f"{name} needs {METRICS[name].needs}, which this model does not have"
                )

    def plan(self, n_features: int, budget: Budget) -> EvaluationPlan:
        """All releases, with the least noise that keeps within the budget; metrics share it evenly."""
        stages = [stage for name in self.metrics for stage in METRICS[name].stages]
        releases = tuple(
            Release(stage.name, Gaussian(stage.share**-0.5), 1, stage.sensitivity, entries=stage.entries)
            for stage in stages
        )
        setting = self.setting
        plan = EvaluationPlan(
            setting.n_records, n_features, budget, setting.neighbours, 1, releases, 1,
            ", ".join(self.metrics), setting.log_loss_cut,
        )  # fmt: skip
        return plan.calibrated()

    def run(self, plan: EvaluationPlan, curator: Curator) -> tuple[Estimate, ...]:
        """Carry out a plan; what is not in it is not released."""

        def release(stage: str, query: Query) -> tuple[Vector, float]:
            mechanism = plan[stage].mechanism
            sensitivity = query.sensitivity(plan.neighbours)
            assert isinstance(sensitivity, float)
            return curator.release(query, mechanism), mechanism.noise * sensitivity

        return tuple(METRICS[name].run(self.setting, release, self.level) for name in self.metrics)
