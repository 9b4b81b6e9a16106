"""The audit of checks of raw tables, as if a check were a solver whose model is the shares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from ..bounds import Bounds
from ..curator import Curator
from ..data.cell_tally import FINE, MISSING, OUTSIDE, UNREADABLE, Codes
from ..evaluation import Checker, CheckPlan
from ..losses import Squared
from ..penalties import Zero
from ..plan import Plan
from ..privacy import PUBLIC_SIZE, Budget, Neighbours
from ..problem import Problem
from ..queries import CellCounts
from ..solvers import AnySolver, AuditCase, Result
from .holdings import on_a_stream
from .targets import TranscriptTarget

NAME = "check"
"""By this name `audit_registry` audits checks."""

_BYSTANDERS = 15
_CODES: Codes = ((MISSING, UNREADABLE, OUTSIDE),) * 2 + ((MISSING,),)
_COLUMNS = {name: ("missing", "unreadable", "out of range") for name in ("a", "b")}


@dataclass(frozen=True)
class Checks:
    """A check in the place of a solver: the released shares are its model."""

    def plan(
        self, problem: Problem, n: int, p: int, budget: Budget, neighbours: Neighbours, *,
        resident: bool = True,
    ) -> CheckPlan:  # fmt: skip
        """The plan of the check."""
        return CheckPlan.of(CellCounts(_CODES, n), budget, neighbours, problem.unit)

    def run(self, plan: Plan, problem: Problem, curator: Curator) -> Result:
        """The shares, in an array as long as the coefficients of the problem."""
        assert isinstance(plan, CheckPlan)
        shares = Checker(_COLUMNS, CellCounts(_CODES, plan.n_records)).run(plan, curator)
        return Result(np.resize([share.value for share in shares], problem.dimension(plan.n_features)), 1)


def check_targets(budget: Budget) -> Iterator[TranscriptTarget]:
    """A record whose cells are all out of range, against one without cells or a null one."""
    problem = Problem(Squared(), Zero(), Bounds(row_norm=math.inf), fit_intercept=False)
    crowd = np.full((_BYSTANDERS, len(_CODES)), float(FINE)), np.zeros(_BYSTANDERS)
    outside, nothing = np.array([OUTSIDE, OUTSIDE, FINE]), np.full(len(_CODES), MISSING)
    case = AuditCase(
        cast(AnySolver, Checks()), problem, crowd, (outside.astype(float), 0.0), (nothing.astype(float), 0.0)
    )
    for neighbours in PUBLIC_SIZE:
        yield TranscriptTarget.of(case, budget, neighbours)
    for neighbours in PUBLIC_SIZE:
        yield TranscriptTarget.of(case, budget, neighbours, on_a_stream)
    yield TranscriptTarget.of(case.persons(first=1, second=25), budget, Neighbours.REPLACE_ONE)
