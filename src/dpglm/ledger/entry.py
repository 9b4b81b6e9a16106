"""One entry of a journal: text that is hashed as a whole, so no field can be changed unseen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from types import MappingProxyType
from typing import Any

from .. import strict
from ..errors import LedgerError
from .price import FREE, Price

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


def written(
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
    return read(body, digest(body))


def digest(body: str) -> str:
    """The hash of an entry."""
    return hashlib.sha256(body.encode()).hexdigest()


def read(body: object, expected: object) -> Entry:
    """The entry of a text, if that has this hash and is one that ``written`` can have made."""
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
        if texts["part"] not in spent or WHOLE not in spent or not charge <= spent[texts["part"]]:
            raise ValueError("a charge is not among what was spent")
        if charge != FREE and kind not in CHARGED:
            raise ValueError(f"a {kind} costs nothing")
        number = strict.whole("number", values["number"], least=0)
        if (number == 0) != (kind == "opening") or (number == 0) != (not texts["previous"]):
            raise ValueError("the opening is the first entry, and only that")
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"an entry of the journal cannot be read: {error}") from None
    frozen = MappingProxyType(spent)
    return Entry(
        number=number,
        kind=kind,
        charge=charge,
        spent=frozen,
        content=content,
        body=body,
        hash=expected,
        **texts,
    )


@lru_cache(maxsize=1)
def version() -> str:
    """The version of dpglm that writes."""
    try:
        return metadata.version("dpglm")
    except metadata.PackageNotFoundError:
        return "unknown"
