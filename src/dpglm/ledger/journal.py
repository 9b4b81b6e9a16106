"""The journal of an account: entries hashed as a whole, in a chain in which none can be changed unseen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from importlib import metadata
from types import MappingProxyType
from typing import Any

from .. import strict
from ..accounting import gaussian_epsilon
from ..errors import LedgerError
from ..privacy import Budget, Neighbours, rounded_up
from .price import FREE, Price, Remaining

KINDS = ("opening", "parts", "reservation", "release", "commitment", "note")
CHARGED = ("reservation", "release")
WHOLE = ""
"""The part that stands for the whole account."""

_FIELDS = (
    "account", "charge", "content", "kind", "number", "opening", "part", "previous", "spent", "time",
    "version",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """An entry of the journal of an account.

    Attributes
    ----------
    account : str
    number : int
        0 for the opening, then 1, 2, ...
    kind : str
        "opening", "parts", "reservation", "release", "commitment" or "note".
    charge : Price
        What it costs.
    part : str
        The part of the account that is charged; empty for the whole.
    spent : mapping of str to Price
        What was spent for the whole table, under the empty name, and for each part, this entry included.
    content : mapping
        What was decided: a budget, a plan, a release, words.
    time : str
        The day on which it was written, by the writer's clock (UTC); for readers, never used to decide
        anything. No time of day: how long a fit took may tell of the records, and of secret numbers of tries.
        Entries that earlier versions have written state seconds.
    version : str
        The version of dpglm that wrote it.
    previous, opening : str
        Hashes of the entry before and of the opening; empty in the opening.
    """

    account: str
    number: int
    kind: str
    charge: Price
    part: str
    spent: Mapping[str, Price]
    content: Mapping[str, Any]
    time: str
    version: str
    previous: str
    opening: str
    body: str = field(repr=False)
    hash: str = field(repr=False)


def new_entry(
    account: str,
    kind: str,
    content: Mapping[str, object],
    last: Entry | None = None,
    charge: Price = FREE,
    part: str = WHOLE,
    new_parts: tuple[str, ...] = (),
    time: str | None = None,
) -> Entry:
    """A new entry after the last one; the first is the opening. ``time`` is by default today."""
    spent = {WHOLE: FREE} if last is None else dict(last.spent)
    spent |= {name: FREE for name in new_parts}
    spent[part] = spent[part] + charge
    values: dict[str, object] = {
        "account": account,
        "charge": charge.to_list(),
        "content": dict(content),
        "kind": kind,
        "number": 0 if last is None else last.number + 1,
        "opening": "" if last is None else last.opening or last.hash,
        "part": part,
        "previous": "" if last is None else last.hash,
        "spent": {name: price.to_list() for name, price in spent.items()},
        "time": datetime.now(UTC).date().isoformat() if time is None else time,
        "version": version(),
    }
    body = json.dumps(strict.plain("entry", values), sort_keys=True, allow_nan=False, separators=(",", ":"))
    return read_entry(body, digest(body))


def digest(body: str) -> str:
    """The hash of an entry."""
    return hashlib.sha256(body.encode()).hexdigest()


def read_entry(body: object, expected: object) -> Entry:
    """The entry of a text, if that has this hash and is one that `new_entry` can have made."""
    if not isinstance(body, str) or not isinstance(expected, str) or digest(body) != expected:
        raise LedgerError("an entry of the journal was changed: its hash is that of another text")
    try:
        values = strict.mapping("an entry", strict.from_json(body), _FIELDS)
        content = strict.mapping("content", values["content"])
        spent = {
            name: Price.from_list(price) for name, price in strict.mapping("spent", values["spent"]).items()
        }
        charge = Price.from_list(values["charge"])
        kind = strict.one_of("kind", values["kind"], KINDS)
        texts = {name: values[name] for name in ("account", "time", "version", "previous", "opening", "part")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ValueError("a field that must be text is none")
        number = strict.whole("number", values["number"], least=0)
        entry = Entry(
            number=number, kind=kind, charge=charge, spent=MappingProxyType(spent), content=content,
            body=body, hash=expected, **texts,
        )  # fmt: skip
        _require_consistent(entry)
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"an entry of the journal cannot be read: {error}") from None
    return entry


def _require_consistent(entry: Entry) -> None:
    """Refuse an entry that contradicts itself."""
    part, spent, is_first = entry.part, entry.spent, entry.number == 0
    if part not in spent or WHOLE not in spent or not entry.charge <= spent[part]:
        raise ValueError("a charge is not among what was spent")
    if entry.charge != FREE and entry.kind not in CHARGED:
        raise ValueError(f"a {entry.kind} costs nothing")
    if is_first != (entry.kind == "opening") or is_first != (not entry.previous):
        raise ValueError("the opening is the first entry, and only that")


@lru_cache(maxsize=1)
def version() -> str:
    """The version of dpglm that writes."""
    try:
        return metadata.version("dpglm")
    except metadata.PackageNotFoundError:
        return "unknown"


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

    def remaining(self, part: str | None = None) -> Remaining:
        """What may still be spent, on the whole table or on a part."""
        return Remaining(self.terms.budget.less(self.spent(part)), self.terms.delta)

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


def _require_reserved(commitment: Entry, reserved: dict[int, str]) -> None:
    """Take the reservation of a commitment out of those that are open; refuse one that is not among them."""
    number = commitment.content.get("reservation")
    hash_reserved = reserved.pop(number, None) if isinstance(number, int) else None
    if hash_reserved is None or hash_reserved != commitment.content.get("hash"):
        raise LedgerError(f"the journal is broken: entry {commitment.number} commits what was not reserved")


def verify_entries(entries: Iterable[Entry], head: str | None = None) -> State:
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
            _require_reserved(entry, reserved)
        heads.add(entry.hash)
    if opening is None or last is None:
        raise LedgerError("the journal is empty")
    if head is not None and head not in heads:
        raise LedgerError(
            "the journal was cut off or written anew: it has no entry with the hash that was kept"
        )
    return state_of(opening, last)


FORMAT = "dpglm ledger account 1"


def export_entries(entries: Sequence[Entry]) -> str:
    """A journal, which is checked first, as JSON text."""
    verify_entries(entries)
    return strict.to_json(
        {"format": FORMAT, "entries": [{"body": entry.body, "hash": entry.hash} for entry in entries]}
    )


def verify_export(content: str, head: str | None = None) -> State:
    """Check an exported journal; see `Account.verify`."""
    try:
        values = strict.mapping("an exported account", strict.from_json(content), ("format", "entries"))
        if values["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}")
        rows = [
            strict.mapping("an entry", row, ("body", "hash"))
            for row in strict.sequence("entries", values["entries"])
        ]
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"the export cannot be read: {error}") from None
    return verify_entries((read_entry(row["body"], row["hash"]) for row in rows), head)
