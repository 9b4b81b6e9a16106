"""Audits of choices: every release along a path, and the models that searches put out."""

import numpy as np
import pytest

from dpglm import Bounds, Budget, LogisticRegression, PrivateSearch
from dpglm.audit import Claim, audit, examine
from dpglm.audit.targets import FitTarget, Tables, TranscriptTarget
from dpglm.privacy import Neighbours
from dpglm.solvers import GradientDescent, IterateChoice
from dpglm.tables import Split

LARGE = Budget(8.0, 0.01)
INNER = GradientDescent(steps=2, clip=0.1, step_size=20.0)
NO_COLUMNS, BESIDE, JUDGE = IterateChoice.audit_cases()


@pytest.mark.parametrize(
    ("case", "neighbours"),
    [
        (NO_COLUMNS, Neighbours.REPLACE_ONE),
        (NO_COLUMNS, Neighbours.ZERO_OUT),
        (BESIDE, Neighbours.REPLACE_ONE),
        (JUDGE, Neighbours.REPLACE_ONE),
        (JUDGE, Neighbours.ZERO_OUT),
    ],
    ids=[
        "replaced",
        "zeroed out",
        "with weights and offsets",
        "replaced, in the fit too",
        "zeroed out, in the fit too",
    ],
)
def test_a_record_that_judges_is_as_private_as_claimed_and_the_claim_is_not_idle(case, neighbours):
    report = examine(TranscriptTarget.of(case, LARGE, neighbours), runs=200, random_state=0)
    assert not report.violated
    assert max(finding.lower for finding in report.findings) > 0.2


def test_a_record_in_the_fit_is_as_private_as_claimed_and_the_claim_is_not_idle():
    n, share = 8, 0.4
    assert 1 in Split(share).training.taken(0, n)
    row = np.array([0.8])
    X = np.tile(row, (n, 1))
    y = np.ones(n, dtype=int)
    other = X.copy()
    other[1] = -row
    model = LogisticRegression(
        solver=IterateChoice(INNER, share=share), classes=[-1, 1], bounds=Bounds(1.0), fit_intercept=False,
        epsilon=LARGE.epsilon, delta=LARGE.delta,
    )  # fmt: skip
    plan = model.plan(n, 1)
    claim = Claim(plan.budget.epsilon, plan.budget.delta, plan.event)
    target = FitTarget(model, Tables((X, y), (other, y), "replace-one", (row,)), claim, seeded=True)
    report = examine(target, runs=150, random_state=0)
    assert not report.violated and not target.mismatches
    assert max(finding.lower for finding in report.findings) > 1.0


def test_our_search_keeps_its_claim():
    base = LogisticRegression(solver=INNER, classes=[-1, 1], bounds=Bounds(1.0), fit_intercept=False)
    search = PrivateSearch(
        base, {"C": [0.1, 1e9]}, runs=8, law="geometric", epsilon=1.0, delta=0.01, share=0.4
    )
    row = np.array([0.8])
    report = audit(
        search, np.tile(-row, (7, 1)), np.ones(7, dtype=int), (row, 1), (-row, 1), epsilon=1.0, delta=0.01,
        runs=40, view=lambda model: [model.best_estimator_.coef_[0, 0], model.best_score_],
    )  # fmt: skip
    assert not report.violated
