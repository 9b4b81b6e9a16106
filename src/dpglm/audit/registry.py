"""The audit of dpglm: mechanisms, solvers, evaluations, checks, and what schemas learn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from ..accounting import Repeated, calibrate, compose
from ..mechanisms import MECHANISMS, Mechanism
from ..privacy import PUBLIC_SIZE, Budget
from ..solvers import SOLVERS, AnySolver
from .auditor import audit_probabilities, examine
from .cases import (
    ADD_REMOVE,
    CHECK,
    EVALUATION,
    LEARNING,
    add_remove_targets,
    check_targets,
    evaluation_targets,
    learning_targets,
)
from .findings import Claim, Report
from .targets import MechanismTarget, Target, TranscriptTarget, on_a_stream

REPEATS = (1, 10)


def audit_registry(
    names: Collection[str] | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 0.01,
    runs: int = 10_000,
    confidence: float = 0.99,
    random_state: int | None = None,
    progress: bool = False,
) -> Report:
    """Audit every mechanism, solver and metric of dpglm at its own worst cases, and what schemas learn.

    What a schema leaves to be learnt is audited on raw tables, in a tenth of the runs. So are whole fits
    under add-remove, whose tables differ in size.

    Solvers that need nothing but passes are audited on a `Stream` of the same tables, too. That takes longer,
    and sums there are the same numbers as in memory, so it is a tenth of the runs.

    Parameters
    ----------
    names : collection of str, optional
        Only these: names of solvers as in ``solver=...``, names of mechanisms, "learning", "add-remove" for
        fits with a private number of records, "evaluation" for all metrics, and "check" for counts of cells.
    epsilon, delta : float
        The budget that each is calibrated to.
    runs : int
        Runs on each of two neighbouring tables.
    confidence : float
        Probability with which each finding is right about a claim that is true.
    random_state : int, optional
        Makes the audit repeatable.
    progress : bool
        Show progress bars.
    """
    known = list(dict.fromkeys(name for name, _, _ in _parts()))
    unknown = set(names or ()) - set(known)
    if unknown:
        raise ValueError(f"nothing is called {sorted(unknown)}: known are {known}")
    budget = Budget(epsilon, delta)
    report = Report((), confidence)
    for name, targets, is_short in _parts():
        if names is not None and name not in names:
            continue
        if name in _MECHANISMS:
            report += exact_findings(_MECHANISMS[name], budget)
        runs_of_part = max(runs // 10, 4) if is_short else runs
        for target in targets(budget):
            report += examine(target, runs_of_part, confidence, random_state, progress)
    return report


_MECHANISMS = {mechanism.name: mechanism for mechanism in MECHANISMS}


def _parts() -> Iterator[tuple[str, Callable[[Budget], Iterable[Target]], bool]]:
    """The parts of the audit by name: their targets, and whether these get a tenth of the runs."""
    for name, mechanism in _MECHANISMS.items():
        yield name, partial(mechanism_targets, mechanism), False
    yield LEARNING, learning_targets, True
    for name, solver in SOLVERS.items():
        yield name, partial(solver_targets, solver), False
        yield name, partial(stream_targets, solver), True
    yield ADD_REMOVE, add_remove_targets, True
    yield EVALUATION, evaluation_targets, False
    yield CHECK, check_targets, False


def mechanism_targets(mechanism: type[Mechanism], budget: Budget) -> Iterator[Target]:
    """A mechanism at each of its worst cases, once and repeated, with the least noise for a budget."""
    for repeats in REPEATS:
        fitted, claim = _calibrated(mechanism, budget, repeats)
        for case, answers in fitted.worst_cases().items():
            yield MechanismTarget(fitted, case, answers, repeats, claim)


def solver_targets(solver: type[AnySolver], budget: Budget) -> Iterator[TranscriptTarget]:
    """A solver at each of its worst cases, for both neighbouring relations."""
    for case in solver.audit_cases():
        for neighbours in PUBLIC_SIZE:
            yield TranscriptTarget.of(case, budget, neighbours)


def stream_targets(solver: type[AnySolver], budget: Budget) -> Iterator[TranscriptTarget]:
    """A solver on a stream, at each of its worst cases whose plan needs nothing but passes."""
    for case in solver.audit_cases():
        for neighbours in PUBLIC_SIZE:
            target = TranscriptTarget.of(case, budget, neighbours, on_a_stream)
            if not solver.needs(target.plan):
                yield target


def exact_findings(mechanism: type[Mechanism], budget: Budget) -> Report:
    """The exact audit of a mechanism with few outputs; nothing for the others."""
    fitted, claim = _calibrated(mechanism, budget, 1)
    report = Report((), 1.0)
    for case, answers in fitted.worst_cases().items():
        first, second = (fitted.probabilities(answer, 1.0) for answer in answers)
        if first is not None and second is not None:
            subject = f"{mechanism.name} mechanism: {case}"
            report += audit_probabilities(first, second, claim, subject=subject, neighbours="distance 1")
    return report


def _calibrated(mechanism: type[Mechanism], budget: Budget, repeats: int) -> tuple[Mechanism, Claim]:
    event = Repeated(mechanism(1.0).event, repeats)
    factor = calibrate(event, budget.epsilon, budget.delta)
    event = event.scaled(factor)
    return mechanism(factor), Claim(compose(event).epsilon(budget.delta), budget.delta, event)
