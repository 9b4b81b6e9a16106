"""Journals outside of their database."""

from __future__ import annotations

from collections.abc import Sequence

from .. import strict
from ..errors import LedgerError
from .chain import State, verified
from .entry import Entry, read

FORMAT = "dpglm ledger account 1"


def exported(entries: Sequence[Entry]) -> str:
    """A journal, which is checked first, as JSON text."""
    verified(entries)
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
    return verified((read(row["body"], row["hash"]) for row in rows), head)
