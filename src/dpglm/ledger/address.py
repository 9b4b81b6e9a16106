"""Addresses of ledgers and accounts: text without secrets, so that models may keep them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import LedgerError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SQLITE = "sqlite:///"
_POSTGRES = "postgresql://"
_OPTIONS = {
    "host", "port", "service", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout",
    "application_name", "target_session_attrs",
}  # fmt: skip
_NEEDED = (
    "an address is sqlite:///file.db#account or postgresql://user@host/database#account, and #account/part "
    "for a part of an account"
)


@dataclass(frozen=True)
class Address:
    """Where a ledger is, and which of its accounts, and which part of that, is meant."""

    url: str
    account: str | None = None
    part: str | None = None

    @classmethod
    def parse(cls, text: object) -> Address:
        """The address that a text names; one with a password, or of another database, is refused."""
        if not isinstance(text, str):
            raise LedgerError(f"a ledger must be a string, got {type(text).__name__}: {_NEEDED}")
        url, _, fragment = text.partition("#")
        account, _, part = fragment.partition("/")
        for name in (account, part):
            if name and not NAME.fullmatch(name):
                raise LedgerError(f"an account or part has letters, digits and . _ - only: {_NEEDED}")
        if url.startswith(_SQLITE):
            _refuse_sqlite(url)
        elif url.startswith(_POSTGRES):
            _refuse_postgres(url)
        else:
            raise LedgerError(f"a ledger is kept in SQLite or PostgreSQL: {_NEEDED}")
        if part and not account:
            raise LedgerError(f"a part needs an account: {_NEEDED}")
        return cls(url, account or None, part or None)

    @property
    def is_sqlite(self) -> bool:
        """Whether the ledger is a file."""
        return self.url.startswith(_SQLITE)

    @property
    def path(self) -> Path:
        """The file of an SQLite ledger."""
        return Path(self.url.removeprefix(_SQLITE))

    def absolute(self) -> Address:
        """The same address, valid in every working directory."""
        return replace(self, url=f"{_SQLITE}{self.path.resolve()}") if self.is_sqlite else self

    def __str__(self) -> str:
        name = self.account or ""
        return self.url + (f"#{name}" if name else "") + (f"/{self.part}" if self.part else "")


def _refuse_sqlite(url: str) -> None:
    path = url.removeprefix(_SQLITE)
    if not path or path == ":memory:" or "?" in path or "\0" in path:
        raise LedgerError(f"a ledger in SQLite is a file, without options: {_NEEDED}")


def _refuse_postgres(url: str) -> None:
    try:
        parts = urlsplit(url)
        secret = parts.password is not None or ":" in unquote(parts.netloc.rpartition("@")[0])
        options = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    except ValueError:
        raise LedgerError(f"a ledger's address cannot be read: {_NEEDED}") from None
    if secret or any("pass" in name.lower() for name in options):
        raise LedgerError(
            "a ledger's address must not hold a password, because models and journals keep addresses: give "
            "it to PostgreSQL's own library by PGPASSWORD, ~/.pgpass or a service file"
        )
    if not options <= _OPTIONS:
        raise LedgerError(f"a ledger's address may have the options {sorted(_OPTIONS)} only")
