"""What the journal of an account says, and whether it is whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from .. import strict
from ..accounting import gaussian_epsilon
from ..errors import LedgerError
from ..privacy import Budget, Neighbours, rounded_up
from .entry import CHARGED, WHOLE, Entry
from .price import FREE, Price


@dataclass(frozen=True)
class Terms:
    """What an account was opened with. It never changes."""

    name: str
    epsilon: float
    delta: float
    neighbours: str
    unit: str
    budget: Price

    @classmethod
    def of(cls, opening: Entry) -> Terms:
        """The terms that an opening states."""
        keys = ("epsilon", "delta", "neighbours", "unit", "budget")
        try:
            values = strict.mapping("an opening", opening.content, keys)
            promise = Budget(values["epsilon"], values["delta"])
            if not promise.private:
                raise ValueError("epsilon is infinite")
            return cls(
                name=opening.account,
                epsilon=promise.epsilon,
                delta=promise.delta,
                neighbours=Neighbours.from_name(values["neighbours"]).value,
                unit=strict.text("unit", values["unit"]),
                budget=Price.from_list(values["budget"]),
            )
        except ValueError as error:
            raise LedgerError(f"the opening of an account cannot be read: {error}") from None


@dataclass(frozen=True)
class State:
    """An account at its last entry."""

    terms: Terms
    last: Entry

    @property
    def parts(self) -> tuple[str, ...]:
        """The declared parts."""
        return tuple(name for name in self.last.spent if name != WHOLE)

    def spent(self, part: str | None = None) -> Price:
        """What was spent on a record: for the whole table and for its part, or the part with the most."""
        whole = self.last.spent[WHOLE]
        if part:
            return whole + self.last.spent[part]
        most = FREE
        for name in self.parts:
            most = most.larger(self.last.spent[name])
        return whole + most

    def spent_epsilon(self, part: str | None = None) -> float:
        """What was spent, as one epsilon at the account's delta; rounded up to three digits."""
        spent = self.spent(part)
        if not spent.mu_squared:
            return 0.0
        epsilon = gaussian_epsilon(spent.mu, float(Fraction(self.terms.delta) - spent.slack))
        return min(float(rounded_up(epsilon, 3)), self.terms.epsilon)

    def left(self, part: str | None = None) -> Price:
        """What may still be spent, on the whole table or on a part."""
        return self.terms.budget.less(self.spent(part))

    def affords(self, charge: Price, part: str | None = None) -> bool:
        """Whether a charge stays within the budget."""
        return self.spent(part) + charge <= self.terms.budget


def state_of(opening: Entry, last: Entry) -> State:
    """The state that the first and the last entry state; refuses what does not belong together."""
    if opening.number != 0 or last.account != opening.account or (last.opening or last.hash) != opening.hash:
        raise LedgerError("the journal is broken: its last entry belongs to another opening")
    state = State(Terms.of(opening), last)
    if not state.spent() <= state.terms.budget:
        raise LedgerError("the journal is broken: more was spent than the budget")
    return state


def require_link(before: Entry, after: Entry) -> None:
    """Refuse two entries of which the second does not follow from the first."""
    if (after.number, after.previous, after.account) != (before.number + 1, before.hash, before.account):
        raise LedgerError(f"the journal is broken before entry {after.number}")
    expected = dict(before.spent)
    if after.kind == "parts":
        names = after.content.get("names")
        names = names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []
        if not names or set(after.spent) != {WHOLE, *names} or set(before.spent) != {WHOLE}:
            raise LedgerError(f"the journal is broken: entry {after.number} declares parts that cannot be")
        expected |= {name: FREE for name in names}
    if after.kind in CHARGED and after.part in expected:
        expected[after.part] = expected[after.part] + after.charge
    if expected != dict(after.spent):
        raise LedgerError(f"the journal is broken: entry {after.number} does not add up")


def verified(entries: Iterable[Entry], head: str | None = None) -> State:
    """Check a whole journal, from its opening to its last entry, and return what it says.

    Parameters
    ----------
    entries : iterable of Entry
    head : str, optional
        The hash of an entry that must be there: one that was kept elsewhere shows that nothing up to it was
        cut off or written anew.
    """
    opening = last = None
    reserved: dict[int, str] = {}
    heads = set()
    for entry in entries:
        if opening is None or last is None:
            opening = last = entry
            if entry.number != 0 or entry.opening or entry.spent != {WHOLE: FREE}:
                raise LedgerError("the journal is broken: it does not begin with an opening")
        else:
            require_link(last, entry)
            if entry.opening != opening.hash:
                raise LedgerError(f"the journal is broken: entry {entry.number} belongs to another opening")
            last = entry
        if entry.kind == "reservation":
            reserved[entry.number] = entry.hash
        if entry.kind == "commitment":
            number = entry.content.get("reservation")
            kept = reserved.pop(number, None) if isinstance(number, int) else None
            if kept is None or kept != entry.content.get("hash"):
                raise LedgerError(
                    f"the journal is broken: entry {entry.number} commits what was not reserved"
                )
        heads.add(entry.hash)
    if opening is None or last is None:
        raise LedgerError("the journal is empty")
    if head is not None and head not in heads:
        raise LedgerError(
            "the journal was cut off or written anew: it has no entry with the hash that was kept"
        )
    return state_of(opening, last)
