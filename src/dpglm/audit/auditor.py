"""The auditor: runs a target on two neighbouring tables and compares what it sees with the claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..estimators.base import PrivateGLM
from ..mechanisms import Randomness
from ..privacy import Neighbours
from ..silence import silent
from .findings import Claim, Finding, Report
from .lower_bounds import bound, exact_epsilon
from .targets import FitTarget, FunctionTarget, ModelTarget, Record, Tables, Target, worst_tables

_PROBABILITY_SLACK = 1e-9


def audit(
    estimator: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    first: Record | None = None,
    second: Record | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    runs: int = 2_000,
    confidence: float = 0.99,
    view: Callable[[Any], ArrayLike] | None = None,
    random_state: int | None = None,
    progress: bool = False,
) -> Report:
    """Fit an estimator many times to two neighbouring tables and lower-bound the epsilon it really spends.

    Estimators of dpglm need no other argument: the tables are chosen as worst cases, and the claim is that
    of their plan. Every release of theirs is audited beside the fitted model, and every fit is
    repeated over the other table with the same releases, which must give the same model.

    Parameters
    ----------
    estimator : object with ``fit``
        It is copied, never changed.
    X, y : array, optional
        Records that both tables have.
    first, second : (row, target), optional
        The record in which the tables differ; ``second=None`` leaves it out, or makes it null for an
        estimator of dpglm with zero-out neighbours. Under add-remove the tables differ in size.
    epsilon, delta : float, optional
        The claim, for estimators of other libraries (delta 0 by default).
    runs : int
        Fits to each of the tables.
    confidence : float
        Probability with which each finding is right about a claim that is true.
    view : callable
        What of a fitted model is seen; by default ``coef_``, ``intercept_`` and the margins they give to the
        record in question.
    random_state : int, optional
        Makes the audit repeatable: each fit gets its own seed from this one. By default the estimator draws
        its noise as it does in use.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Report

    Examples
    --------
    >>> from dpglm import LogisticRegression
    >>> from dpglm.audit import audit
    >>> report = audit(LogisticRegression(epsilon=1.0, classes=[-1, 1]), runs=100, random_state=0)
    >>> report.violated
    False
    """
    examined = partial(
        examine, runs=runs, confidence=confidence, random_state=random_state, progress=progress
    )
    seeded = random_state is not None
    if seeded and getattr(estimator, "random_state", None) is not None:
        raise ValueError("the estimator has a random_state of its own, which that of the audit would replace")
    if seeded and not hasattr(estimator, "set_params"):
        raise ValueError("random_state needs an estimator with set_params")
    if not isinstance(estimator, PrivateGLM):
        if X is None or y is None or first is None or epsilon is None:
            raise ValueError("an estimator of another library needs X, y, first and epsilon")
        tables = Tables.with_record(X, y, first, second)
        claim = Claim(float(epsilon), 0.0 if delta is None else float(delta))
        return examined(ModelTarget(estimator, tables, claim, view, seeded))
    if epsilon is not None or delta is not None:
        raise ValueError(
            "the claim of an estimator of dpglm is that of its plan: leave epsilon and delta out"
        )
    if not math.isfinite(estimator.epsilon):
        raise ValueError("with an infinite epsilon nothing is claimed, so there is nothing to audit")
    tables = _tables(estimator, X, y, first, second)
    with silent():
        plan = ModelTarget(estimator, tables, Claim(1.0, 0.0), view).fitted(False, Randomness()).plan_
    claim = Claim(plan.budget.epsilon, plan.budget.delta, plan.event)
    report = examined(ModelTarget(estimator, tables, claim, view, seeded))
    return report + examined(FitTarget(estimator, tables, claim, view, seeded))


def _tables(
    estimator: PrivateGLM,
    X: ArrayLike | None,
    y: ArrayLike | None,
    first: Record | None,
    second: Record | None,
) -> Tables:
    """The tables for an estimator of dpglm: those given, in its own relation, or the worst that are known."""
    if X is None:
        if not (y is None and first is None and second is None):
            raise ValueError("y, first and second come with X")
        return worst_tables(estimator)
    if y is None or first is None:
        raise ValueError("X comes with y and the record first")
    relation = Neighbours(estimator.neighbours)
    if relation is not Neighbours.REPLACE_ONE:
        if second is not None:
            raise ValueError(f"with {relation.value} neighbours second is no record: leave it out")
        if relation is Neighbours.ZERO_OUT:
            second = (np.full(np.shape(X)[1], np.nan), first[1])
    elif second is None:
        raise ValueError("replace-one needs the record second that takes the place of first")
    return Tables.with_record(X, y, first, second, estimator.neighbours)


def examine(
    target: Target,
    runs: int = 2_000,
    confidence: float = 0.99,
    random_state: int | None = None,
    progress: bool = False,
) -> Report:
    """Run a target on both tables: a finding for each of its views, and one about replays if it has any."""
    if runs < 4:
        raise ValueError(f"runs must be at least 4, got {runs!r}")
    randomness = Randomness(random_state)
    # A million fits must not print a million times what one fit says.
    with silent():
        rows = [
            [np.ravel(target.run(side, randomness)) for _ in _shown(runs, target, side, progress)]
            for side in (False, True)
        ]
    # A number of outputs that differs from run to run is itself an output: what is missing counts as NaN.
    width = max(len(row) for side in rows for row in side)
    first, second = (np.full((runs, width), np.nan) for _ in rows)
    for table, side in zip((first, second), rows, strict=True):
        for k, row in enumerate(side):
            table[k, : len(row)] = row
    report = Report((), confidence)
    for seen, columns in target.views.items():
        report += audit_outputs(
            first[:, columns], second[:, columns], target.claim, confidence=confidence,
            subject=target.subject, seen=seen, neighbours=target.neighbours,
        )  # fmt: skip
    mismatches = getattr(target, "mismatches", None)
    if mismatches is None:
        return report
    how = f"differed: {sorted(set(mismatches))}" if mismatches else "every replay returned the same"
    claim = target.claim
    replay = Finding(
        target.subject, "replay", target.neighbours, claim.epsilon, claim.delta, 0.0, 0.0, 2 * runs,
        bool(mismatches), how,
    )  # fmt: skip
    return report + Report((replay,), confidence)


def audit_outputs(
    first: ArrayLike,
    second: ArrayLike,
    claim: Claim,
    *,
    confidence: float = 0.99,
    subject: str = "outputs",
    seen: str = "output",
    neighbours: str = "given",
) -> Report:
    """Audit outputs that were collected elsewhere.

    Parameters
    ----------
    first, second : array of shape (runs,) or (runs, numbers)
        What independent runs put out, on either of two neighbouring tables.
    claim : Claim
    confidence : float
    subject, seen, neighbours : str
        Names for the report.

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm.audit import Claim, audit_outputs
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.laplace(size=(2, 10_000))
    >>> audit_outputs(noise[0], noise[1] + 1, Claim(epsilon=0.5, delta=0.0)).violated
    True
    """
    found = bound(first, second, claim, confidence)
    finding = Finding(
        subject, seen, neighbours, claim.epsilon, claim.delta, found.epsilon, found.explained,
        np.shape(first)[0], found.violated, found.test.words,
    )  # fmt: skip
    return Report((finding,), confidence)


def audit_function(
    function: Callable[[bool], ArrayLike],
    claim: Claim,
    *,
    runs: int = 10_000,
    confidence: float = 0.99,
    subject: str = "function",
    neighbours: str = "given",
    progress: bool = False,
) -> Report:
    """Audit anything: a function that takes whether to use the second table and returns numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from dpglm.audit import Claim, audit_function
    >>> rng = np.random.default_rng(0)
    >>> audit_function(lambda second: rng.laplace() + second, Claim(epsilon=1.0, delta=0.0)).violated
    False
    """
    return examine(FunctionTarget(function, claim, subject, neighbours), runs, confidence, progress=progress)


def audit_probabilities(
    first: ArrayLike,
    second: ArrayLike,
    claim: Claim,
    *,
    subject: str = "probabilities",
    neighbours: str = "given",
) -> Report:
    """Audit a mechanism with few outputs exactly, from their probabilities on two neighbouring tables.

    Examples
    --------
    >>> from dpglm.audit import Claim, audit_probabilities
    >>> audit_probabilities([0.75, 0.25], [0.25, 0.75], Claim(epsilon=1.0, delta=0.0)).violated
    True
    """
    for law in (first, second):
        if abs(float(np.sum(law)) - 1) > _PROBABILITY_SLACK or np.min(law) < 0:
            raise ValueError("first and second must each be probabilities with sum 1")
    lower = exact_epsilon(first, second, claim.delta)
    violated = lower > claim.epsilon * (1 + _PROBABILITY_SLACK) + _PROBABILITY_SLACK
    finding = Finding(
        subject, "probabilities", neighbours, claim.epsilon, claim.delta, lower, 0.0, 0, violated,
        "computed, not sampled",
    )  # fmt: skip
    return Report((finding,), 1.0)


def _shown(runs: int, target: Target, second: bool, progress: bool) -> Iterator[int]:
    """The numbers of the runs, with a progress bar if one is wanted."""
    if not progress:
        yield from range(runs)
        return
    try:
        from rich.console import Console
        from rich.progress import track
    except ModuleNotFoundError:
        raise ModuleNotFoundError("progress=True needs rich: pip install 'dpglm[cli]'") from None

    console, table = Console(stderr=True), "second" if second else "first"
    yield from track(
        range(runs), f"{target.subject}, {table} table", console=console, transient=True,
        disable=not console.is_terminal,
    )  # fmt: skip
