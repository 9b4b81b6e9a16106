"""Guarantee and randomness of what keeps to a plan."""

from __future__ import annotations

import warnings
from numbers import Integral

import numpy as np

from ..errors import PrivacyWarning
from ..mechanisms import Randomness
from ..plan import Plan
from ..privacy import Guarantee


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
