"""Randomness, log and promise of what keeps to a plan."""

from __future__ import annotations

import warnings
from collections import Counter
from numbers import Integral

import numpy as np

from ..accounting import Event
from ..errors import PlanMismatch, PrivacyWarning
from ..mechanisms import Randomness
from ..plan import Plan
from ..privacy import Guarantee
from .counting import stated_size


def guarantee_of(
    plan: Plan, randomness: Randomness, public: dict[str, object], record_share: str | None = None
) -> Guarantee:
    """The promise of what kept to its plan."""
    facts = {
        **stated_size(plan),
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


def require_kept(who: str, plan: Plan, spent: Counter[Event]) -> None:
    """Refuse what released something other than its plan."""
    if plan.budget.private and spent != plan.price:
        raise PlanMismatch(f"{who} released something other than its plan: the fit is refused")


def warn_of_delta(plan: Plan) -> None:
    """Warn of a delta that is no promise to each record."""
    if plan.budget.private and plan.budget.delta > 1 / plan.n_records:
        warnings.warn(
            f"delta = {plan.budget.delta:g} exceeds 1/n: such a promise may release whole records",
            PrivacyWarning,
            stacklevel=4,
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
