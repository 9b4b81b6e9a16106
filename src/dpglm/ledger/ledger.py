"""A ledger: a database of accounts."""

from __future__ import annotations

from .. import strict
from ..errors import LedgerError
from ..privacy import Neighbours
from .account import Account, opened
from .address import NAME, Address
from .journal import written
from .price import whole_budget


class Ledger:
    """A database of accounts, each with a budget that lasts over fits, days and colleagues.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db``, or ``postgresql://user@host/database``. It must not hold a password.

    Examples
    --------
    >>> import tempfile
    >>> from dpglm import Ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"sqlite:///{folder.name}/budget.db")
    >>> account = ledger.create("patients-2026", epsilon=3.0, delta=1e-8)
    >>> account.enter("a chart of ages, published elsewhere", epsilon=0.1, delta=0.0).number
    1
    >>> ledger.accounts()
    ['patients-2026']
    >>> folder.cleanup()
    """

    def __init__(self, url: str) -> None:
        address = Address.parse(url)
        if address.account:
            raise LedgerError("a ledger's address has no #account: use ledger.account(name)")
        self.address = address.absolute()

    def create(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float,
        neighbours: str = "replace-one",
        unit: str = "record",
    ) -> Account:
        """Open an account, and make the database if there is none.

        Parameters
        ----------
        name : str
            Letters, digits and ``. _ -``.
        epsilon, delta : float
            What everything together may cost. A tenth of delta is set aside for slacks.
        neighbours : "replace-one", "zero-out" or "add-remove"
            The relation of the promise. Fits for another are refused.
        unit : str
            What one neighbour differs in: a "record", or a "person" for fits with ``units``. Fits that
            protect another unit are refused.
        """
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise LedgerError(f"an account's name has letters, digits and . _ - only, got {name!r}")
        terms = {
            "epsilon": float(epsilon),
            "delta": float(delta),
            "neighbours": Neighbours.from_name(neighbours).value,
            "unit": strict.text("unit", unit),
            "budget": whole_budget(epsilon, delta).to_list(),
        }
        with opened(self.address, write=True, create=True) as journal:
            if name in journal.names():
                raise LedgerError(f"the ledger already has an account {name!r}")
            journal.append(written(name, "opening", terms))
        return self.account(name)

    def account(self, name: str, part: str | None = None) -> Account:
        """The account of this name, or a declared part of it; its whole journal is checked."""
        address = Address.parse(f"{self.address.url}#{name}" + (f"/{part}" if part else ""))
        account = Account(address)
        account.verify()
        return account

    def accounts(self) -> list[str]:
        """The names of all accounts."""
        with opened(self.address) as journal:
            return journal.names()

    def __repr__(self) -> str:
        return f"Ledger({self.address.url!r})"
