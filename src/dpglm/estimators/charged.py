"""Estimators that pay for their fits from an account of a ledger."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

from ..ledger import Reservation, current_account, reserve, resolved
from ..plan import Plan

_CARRIED = "_carried_ledger"


class Charged:
    """What estimators know of ledgers: an address, never a connection or a secret.

    An estimator that names no ledger and is sent to another process, or cloned there, inside a block
    ``with account:`` carries the address of that account with it.
    """

    ledger: str | None
    epsilon: float

    def _reserved(
        self, plan: Plan, secure: bool, plan_of: Callable[[Any], Plan], ready: Callable[[], None]
    ) -> Reservation | None:
        """Charge the account for a plan, if there is one; ``plan_of`` plans for a changed copy of this.

        ``ready`` is called before, and even if there is no account; an error that it raises costs nothing.
        """

        def planned(epsilon: float) -> Plan:
            other = copy.copy(self)
            other.epsilon = epsilon
            return plan_of(other)

        address = resolved(self.ledger, vars(self).get(_CARRIED))
        return reserve(address, plan, secure=secure, planned=planned, ready=ready)

    def _pays(self) -> bool:
        """Whether an account pays for the next fit."""
        return resolved(self.ledger, vars(self).get(_CARRIED)) is not None

    def _spends(self, secure: bool) -> bool:
        """Whether the next fit spends a budget: not with a seed, which promises nothing, nor in an audit."""
        return secure and current_account() != ""

    def _to_carry(self) -> dict[str, str]:
        address = None
        if self.ledger is None:
            address = current_account() or vars(self).get(_CARRIED)
        return {_CARRIED: address} if address else {}

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, **self._to_carry()}

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()  # type: ignore[misc]
        vars(made).update(self._to_carry())
        return made
