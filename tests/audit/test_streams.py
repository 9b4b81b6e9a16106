"""Solvers that need nothing but passes keep their claims on a stream, too."""

import itertools

import numpy as np
import pytest

from dpglm import Budget, Neighbours
from dpglm.audit import audit_registry, examine
from dpglm.audit.registry import stream_targets
from dpglm.audit.targets import TranscriptTarget, in_memory, on_a_stream
from dpglm.data import Records
from dpglm.mechanisms import Randomness
from dpglm.privacy import PUBLIC_SIZE
from dpglm.solvers import SOLVERS, DualFrankWolfe, FrankWolfe, GradientDescent

BUDGET = Budget(1.0, 0.01)
TARGETS = [target for solver in SOLVERS.values() for target in stream_targets(solver, BUDGET)]
REPLAYED = [
    # Each worst case under one relation, both in turn. A run of dual Frank-Wolfe searches for many
    # minimisers: one relation will do for all of its cases.
    target
    for k, target in enumerate(TARGETS)
    if target.plan.neighbours
    is (Neighbours.ZERO_OUT if isinstance(target.case.solver, DualFrankWolfe) else PUBLIC_SIZE[k // 2 % 2])
]


pytestmark = pytest.mark.usefixtures("minimisers_are_found_once")


def named(target):
    return f"{target.subject}, {target.neighbours}"


def test_every_solver_that_serves_streams_is_audited_on_one():
    assert {target.plan.solver for target in TARGETS} == {
        "gradient descent", "greedy coordinate descent", "Frank-Wolfe", "dual Frank-Wolfe",
        "output perturbation", "objective perturbation", "Newton", "preconditioned descent",
    }  # fmt: skip
    assert not any(isinstance(records, Records) for target in TARGETS for records in target._records)
    assert all(target.subject.endswith(", on a stream") for target in TARGETS)


def test_every_worst_case_is_replayed_and_every_solver_under_both_relations():
    assert {id(target.case) for target in REPLAYED} == {id(target.case) for target in TARGETS}
    relations = {(target.plan.solver, target.plan.neighbours) for target in TARGETS}
    replayed = {(target.plan.solver, target.plan.neighbours) for target in REPLAYED}
    assert relations - replayed == {("dual Frank-Wolfe", Neighbours.REPLACE_ONE)}


@pytest.mark.parametrize("target", REPLAYED, ids=named)
def test_every_replay_on_a_stream_returns_the_same(target):
    report = examine(target, runs=4, random_state=1)
    assert not report.violated, str(report)


@pytest.mark.parametrize(
    ("case", "neighbours"),
    list(itertools.product((*GradientDescent.audit_cases(), FrankWolfe.audit_cases()[2]), PUBLIC_SIZE)),
)
def test_a_run_on_a_stream_is_the_run_in_memory(case, neighbours):
    """Coefficients, releases, and likelihood ratios, those of secret batches included."""
    plan = TranscriptTarget.of(case, BUDGET, neighbours, on_a_stream).plan
    for second in (False, True):
        here, there = (
            TranscriptTarget(case, plan, holding).run(second, Randomness(3))
            for holding in (on_a_stream, in_memory)
        )
        # A likelihood ratio of persons is a sum of logarithms in another order.
        assert np.allclose(here[:1], there[:1], rtol=1e-10 if case.problem.has_units else 1e-12, atol=0)
        assert np.allclose(here[1:], there[1:], rtol=1e-12, atol=0)
        same = slice(1 if case.problem.has_units else 0, None)
        assert isinstance(case.solver, FrankWolfe) or np.array_equal(here[same], there[same])


def test_the_audit_of_the_registry_has_streams_in_it():
    report = audit_registry(["greedy-coordinate-descent"], runs=4, random_state=2)
    subjects = [finding.subject for finding in report.findings]
    streams = [subject for subject in subjects if subject.endswith("on a stream")]
    assert len(streams) == len(subjects) / 2
