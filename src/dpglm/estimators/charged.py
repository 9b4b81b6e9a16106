"""Estimators that pay for their fits from an account of a ledger."""

from __future__ import annotations

from typing import Any, Self

from ..ledger import context, resolved

_CARRIED = "_carried_ledger"


class Charged:
    """What estimators know of ledgers: an address, never a connection or a secret.

    An estimator that names no ledger and is sent to another process, or cloned there, inside a block
    ``with account:`` carries the address of that account with it.
    """

    ledger: str | None
    epsilon: float

    @property
    def _account(self) -> str | None:
        """Address of the account that pays for the next fit, if one does."""
        return resolved(self.ledger, vars(self).get(_CARRIED))

    def _to_carry(self) -> dict[str, str]:
        address = None
        if self.ledger is None:
            address = context.current() or vars(self).get(_CARRIED)
        return {_CARRIED: address} if address else {}

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, **self._to_carry()}

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()  # type: ignore[misc]
        vars(made).update(self._to_carry())
        return made
