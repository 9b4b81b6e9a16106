"""How a fit pays: reserve before the first release, commit after the last release."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import LedgerError, PrivacyWarning
from ..plan import Plan
from .account import Account
from .address import Address
from .journal import Entry


@dataclass(frozen=True)
class Reservation:
    """A charge for a fit that has not returned yet."""

    account: Account
    entry: Entry

    @property
    def words(self) -> str:
        """The entry, as a promise states it: without the address."""
        part = f", part {self.account.part}" if self.account.part else ""
        return f"account {self.account.name}{part}, entry {self.entry.number}, hash {self.entry.hash}"

    def commit(self) -> None:
        """Note that the fit has returned. If that fails, the charge stays, and so does the model."""
        try:
            self.account.commit(self.entry)
        except LedgerError as error:
            warnings.warn(
                f"the fit is paid for, but the ledger could not note that it has ended: {error}",
                PrivacyWarning,
                stacklevel=4,
            )


def reserve(
    address: str | None,
    plan: Plan,
    *,
    secure: bool,
    planned: Callable[[float], Plan],
    ready: Callable[[], None] = lambda: None,
) -> Reservation | None:
    """Charge the account at an address for a plan; None without an address.

    Parameters
    ----------
    address : str or None
    plan : Plan
    secure : bool
        Whether the noise will be unpredictable. If not, nothing is promised, and an account refuses it.
    planned : callable
        The plan of the same fit at another epsilon.
    ready : callable, optional
        What is done first, unless the account cannot pay: an error that it raises costs nothing.
    """
    if address is None:
        ready()
        return None
    place = Address.parse(address)
    if place.account is None:
        raise LedgerError("a fit needs an account: add #name to the address of the ledger")
    account = Account(place.absolute())
    if not secure:
        raise LedgerError(
            f"random_state makes the noise predictable, and such a fit promises nothing at any price: the "
            f"account {account.name!r} refuses it"
        )
    return Reservation(account, account.reserve(plan, planned, ready=ready))
