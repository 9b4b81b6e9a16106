"""Ledgers and accounts, and how a fit pays: reserve before the first release, commit after the last."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .. import strict
from ..errors import BudgetExceeded, DpglmError, LedgerError, PrivacyWarning
from ..plan import Plan
from ..privacy import Neighbours
from .address import NAME, Address, pop, push
from .journal import WHOLE, Entry, State, export_entries, new_entry, require_link, state_of, verify_entries
from .price import (
    FIT_SHARE,
    Price,
    Remaining,
    largest_epsilon,
    price_of_epsilon,
    price_of_mu,
    price_of_plan,
    whole_budget,
)

if TYPE_CHECKING:
    from .storage import Journal


class _TooLittle(DpglmError):
    """A charge that an account, in this state, cannot pay."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state


@dataclass(frozen=True)
class Account:
    """A budget for one data set, and the journal of what was spent of it. `Ledger.account` gives it.

    ``with account:`` makes it the ledger of all fits in a block that name none.
    """

    address: Address

    @property
    def name(self) -> str:
        """The account's name."""
        return str(self.address.account)

    @property
    def part(self) -> str | None:
        """The declared part of the data that is meant; None for all of it."""
        return self.address.part

    def state(self) -> State:
        """What the first and the last entry say; what lies between is checked by `verify`."""
        with transaction(self.address) as journal:
            return self._state(journal, lock=False)

    def remaining(self) -> Remaining:
        """What may still be spent."""
        state = self.state()
        return state.remaining(self.part)

    def left(self) -> Remaining:
        """The old name of `remaining`."""
        warnings.warn("Account.left() is now Account.remaining()", FutureWarning, stacklevel=2)
        return self.remaining()

    def history(self) -> list[Entry]:
        """All entries of the journal, each with its hash checked."""
        with transaction(self.address) as journal:
            self._state(journal, lock=False)
            return list(journal.entries(self.name))

    def verify(self, head: str | None = None) -> State:
        """Check the whole journal: hashes, order, sums, and the file; refuse it if anything is wrong.

        Parameters
        ----------
        head : str, optional
            The hash of the last entry, noted earlier and kept elsewhere. A journal that was cut back to an
            earlier state is whole in itself; only a hash that is kept elsewhere shows that it was cut.
        """
        from .storage import require_sound_file

        with transaction(self.address) as journal:
            require_sound_file(journal)
            # checks the row that names the last entry, too
            state = self._state(journal, lock=False)
            whole = verify_entries(journal.entries(self.name), head)
            if whole.last.hash != state.last.hash:
                raise LedgerError(
                    "the journal is broken: its last entry is not the one that the account names"
                )
            return whole

    def note(self, text: str) -> Entry:
        """Write words into the journal. They cost nothing."""
        content = {"text": strict.text("text", text)}
        return self._append(lambda state: new_entry(self.name, "note", content, state.last))

    def parts(self, rule: str, names: Sequence[str]) -> list[Account]:
        """Declare that the data fall into disjoint parts by a public rule, and return their accounts.

        What is spent on different parts does not add up: a record costs what was spent on the whole table and
        on its own part. That needs that *which part a record belongs to is public*: neighbouring tables have
        the same parts. A rule that looks at private values, which a changed record may change, does not do.

        Parameters
        ----------
        rule : str
            The rule in words; it is kept in the journal.
        names : sequence of str
            The parts. They can be declared once, and before anything else is spent on a part.
        """
        found = [str(name) for name in names]
        if len(set(found)) < 2 or len(set(found)) < len(found) or not all(map(NAME.fullmatch, found)):
            raise LedgerError("parts are at least two different names of letters, digits and . _ -")
        content = {"rule": strict.text("rule", rule), "names": found}

        def declared(state: State) -> Entry:
            if state.parts:
                raise LedgerError(f"the account {self.name!r} has parts already: {', '.join(state.parts)}")
            return new_entry(self.name, "parts", content, state.last, new_parts=tuple(found))

        self._append(declared)
        return [Account(Address(self.address.url, self.name, name)) for name in found]

    def enter(
        self,
        text: str,
        *,
        mu: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        plan: Plan | None = None,
    ) -> Entry:
        """Charge a release that was made elsewhere, for the same relation and unit as the account's.

        Parameters
        ----------
        text : str
            What was released; it is kept in the journal.
        mu : float, optional
            Sensitivity over deviation of a Gaussian release.
        epsilon, delta : float, optional
            Or the promise of any release.
        plan : Plan, optional
            Or the plan of a fit without a ledger: ``model.plan_``.
        """
        content: dict[str, object] = {"text": strict.text("text", text)}
        if [mu is None, epsilon is None, plan is None].count(False) != 1 or (epsilon is None) != (
            delta is None
        ):
            raise LedgerError("a release is entered by its mu, or its epsilon and delta, or its plan")
        if mu is not None:
            charge, content["mu"] = price_of_mu(mu), float(mu)
        elif epsilon is not None and delta is not None:
            charge, content["epsilon"], content["delta"] = (
                price_of_epsilon(epsilon, delta),
                float(epsilon),
                float(delta),
            )
        elif plan is not None:
            return self.reserve(plan, kind="release", content=content)
        try:
            return self._append(lambda state: self._charged(state, "release", content, charge))
        except _TooLittle as error:
            raise self._exceeded(error.state, charge) from None

    def reserve(
        self,
        plan: Plan,
        planned: Callable[[float], Plan] | None = None,
        kind: str = "reservation",
        content: dict[str, object] | None = None,
        ready: Callable[[], None] = lambda: None,
    ) -> Entry:
        """Charge a fit before its first release. What is not committed later stays spent.

        Parameters
        ----------
        plan : Plan
        planned : callable, optional
            The plan of the same fit at another epsilon, to say which one the account can pay for.
        ready : callable, optional
            What is done first if the account can pay: an error that it raises costs nothing.
        """
        before = self.state()
        self._require_same(before, plan)
        charge = price_of_plan(plan, before.remaining(self.part).price.slack * FIT_SHARE)
        words = {**(content or {}), "plan": plan.to_dict(), "unit": plan.unit}

        state = before
        if charge is not None:
            if before.affords(charge, self.part):
                ready()
            try:
                return self._append(lambda state: self._charged(state, kind, words, charge))
            except _TooLittle as error:
                state = error.state
        # after the transaction: a search for an epsilon that fits must not keep others waiting
        raise self._exceeded(
            state, charge, lambda price: largest_epsilon(plan, planned, price) if planned else None
        )

    def commit(self, reservation: Entry) -> Entry:
        """Note that what was reserved has been released. When is not noted: the time is the reservation's."""
        content = {"reservation": reservation.number, "hash": reservation.hash}
        return self._append(
            lambda state: new_entry(self.name, "commitment", content, state.last, time=reservation.time)
        )

    def export(self) -> str:
        """The whole journal as JSON text, which `verify_export` checks without the database."""
        return export_entries(self.history())

    def __enter__(self) -> Self:
        self.state()
        push(str(self.address))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pop()

    def __repr__(self) -> str:
        return f"Account({str(self.address)!r})"

    def _state(self, journal: Journal, lock: bool) -> State:
        opening, before, last = journal.ends(self.name, lock)
        if before is not None:
            require_link(before, last)
        state = state_of(opening, last)
        if self.part and self.part not in state.parts:
            raise LedgerError(
                f"the account {self.name!r} has no part {self.part!r}: its parts are {state.parts}"
            )
        return state

    def _append(self, made: Callable[[State], Entry]) -> Entry:
        with transaction(self.address, write=True) as journal:
            entry = made(self._state(journal, lock=True))
            journal.append(entry)
        return entry

    def _charged(self, state: State, kind: str, content: dict[str, object], charge: Price) -> Entry:
        if not state.affords(charge, self.part):
            raise _TooLittle(state)
        return new_entry(self.name, kind, content, state.last, charge, self.part or WHOLE)

    def _exceeded(
        self, state: State, charge: Price | None, search: Callable[[Price], float | None] = lambda price: None
    ) -> BudgetExceeded:
        remaining = state.remaining(self.part)
        slack = remaining.price.slack
        cost = f"costs mu = {0 if charge is None else charge.mu:.4g}"
        if charge is None:
            cost = (
                f"needs more slack than the {float(slack * FIT_SHARE):.2g} that one fit may use: "
                "delta is what lacks, so give the fit a smaller delta, or open an account with a larger one"
            )
        if charge is not None and charge.mu_squared <= remaining.price.mu_squared:
            cost += f" and a slack of {float(charge.slack):.3g}, of which {float(slack):.3g} is left"
        epsilon = search(remaining.price)
        advice = f"; epsilon = {epsilon:g} would fit" if epsilon else ""
        return BudgetExceeded(
            f"the account {self.name!r} has mu = {remaining.mu:.4g} left and this {cost}{advice}",
            remaining.mu,
            float("inf") if charge is None else charge.mu,
            epsilon,
        )

    def _require_same(self, state: State, plan: Plan) -> None:
        terms = state.terms
        if plan.neighbours.value != terms.neighbours:
            raise LedgerError(
                f"the account {self.name!r} is for {terms.neighbours} neighbours and the fit for "
                f"{plan.neighbours.value}: prices of different relations do not add up"
            )
        if terms.unit != plan.unit:
            raise LedgerError(
                f"the account {self.name!r} protects a {terms.unit} and a fit protects a {plan.unit}: "
                f"{'a person may have many records' if plan.unit == 'record' else 'open one with that unit'}"
            )
        if not plan.budget.private:
            raise LedgerError(
                f"a fit without noise (epsilon = inf) costs more than any budget: the account {self.name!r} "
                "refuses it"
            )


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
        with transaction(self.address, write=True, create=True) as journal:
            if name in journal.names():
                raise LedgerError(f"the ledger already has an account {name!r}")
            journal.append(new_entry(name, "opening", terms))
        return self.account(name)

    def account(self, name: str, part: str | None = None) -> Account:
        """The account of this name, or a declared part of it; its whole journal is checked."""
        address = Address.parse(f"{self.address.url}#{name}" + (f"/{part}" if part else ""))
        account = Account(address)
        account.verify()
        return account

    def accounts(self) -> list[str]:
        """The names of all accounts."""
        with transaction(self.address) as journal:
            return journal.names()

    def __repr__(self) -> str:
        return f"Ledger({self.address.url!r})"


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


def transaction(
    address: Address, *, write: bool = False, create: bool = False
) -> AbstractContextManager[Journal]:
    """A transaction on the database at an address; SQLAlchemy is imported here, and nowhere earlier."""
    try:
        from .storage import transaction as connected
    except ModuleNotFoundError:
        raise LedgerError("a ledger needs SQLAlchemy: pip install 'dpglm[ledger]'") from None
    return connected(address, write=write, create=create)
