"""Guarantee and randomness of a fit, and warnings that follow from public numbers."""

from __future__ import annotations

import math
import warnings
from numbers import Integral

import numpy as np

from ..errors import PrivacyWarning
from ..mechanisms import Randomness
from ..penalties import Separable
from ..plan import Plan
from ..privacy import Guarantee
from ..problem import Problem


def guarantee_of(
    plan: Plan, randomness: Randomness, public: dict[str, object], record_share: str | None = None
) -> Guarantee:
    """The promise of what kept to its plan."""
    facts = {
        **_stated_size(plan),
        "p": plan.n_features,
        **public,
        "plan": f"{plan.solver} with {plan.settings_in_words}",
    }
    if plan.learning:
        facts["learning"] = plan.learning_in_words
    return Guarantee(
        epsilon=plan.epsilon,
        delta=plan.budget.delta,
        neighbours=plan.neighbours.value,
        public=facts,
        releases=tuple(plan.stated_releases()) if plan.budget.private else (),
        composition=plan.composition,
        randomness=randomness.description,
        secure=randomness.secure,
        not_covered=plan.neighbours.not_covered_for(plan.unit),
        unit=plan.unit,
        record_share=record_share,
    )


def randomness_of(random_state: object) -> Randomness:
    """Where noise comes from; with a seed it is predictable, which a warning says."""
    if random_state is None:
        return Randomness()
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    if isinstance(random_state, np.random.Generator):
        random_state = random_state.integers(2**63)
    if not isinstance(random_state, Integral) or isinstance(random_state, bool):
        raise ValueError(
            f"random_state must be None, an integer, a RandomState or a Generator, got {random_state!r}"
        )
    warnings.warn(
        "random_state makes the noise predictable: the fit can be repeated but is not private",
        PrivacyWarning,
        stacklevel=4,
    )
    return Randomness(int(random_state))


def _stated_size(plan: Plan) -> dict[str, object]:
    """The number of records, as a promise states it."""
    if plan.count is None:
        return {"n": plan.n_records}
    noise = plan.count.mechanism.noise
    return {"n": f"{plan.n_records}, a released count whose noise has deviation {noise:.3g}"}


def warn_of_delta(plan: Plan) -> None:
    """Warn of a delta that is no promise to each record."""
    if plan.budget.private and plan.budget.delta > 1 / plan.n_records:
        warnings.warn(
            f"delta = {plan.budget.delta:g} exceeds 1/n: such a promise may release whole records",
            PrivacyWarning,
            stacklevel=4,
        )


def warn_of_strong_l1(problem: Problem, n_features: int) -> None:
    """Warn of an L1 strength that leaves no coefficient, or hardly one, within the declared bounds."""
    strength = problem.penalty.coordinate_form()[0] if isinstance(problem.penalty, Separable) else 0.0
    limit = _strongest_l1(problem, n_features)
    if strength >= limit:
        effect = "makes every coefficient 0 for any records within the bounds: choose one well below {:g}"
    elif strength > limit / 4:
        effect = "leaves few or no coefficients: from {:g} on, all are 0 for any records within the bounds"
    else:
        return
    warnings.warn(f"an L1 strength of {strength:g} {effect.format(limit)}", UserWarning, stacklevel=4)


def _strongest_l1(problem: Problem, n_features: int) -> float:
    """The L1 strength from which on the minimiser is 0 for every table within the bounds.

    It is the largest mean of slope times feature at coefficients of 0. With an intercept the slopes add up to
    0 there, so their mean size is at most half the range of targets, and at most the Lipschitz constant.
    Without one it is the largest slope of a prediction of 0, which a convex loss has at an end of the range.
    """
    if problem.fit_intercept or problem.outputs > 1:
        slope = problem.slope_bound()
    elif problem.loss.kind != "classification" and problem.bounds.target is None:
        slope = math.inf
    else:
        ends = np.array(problem.bounds.target or (-1.0, 1.0))
        slope = float(np.abs(problem.loss.derivative(np.zeros(2), ends)).max())
    return slope * problem.bounds.largest_feature(n_features)
