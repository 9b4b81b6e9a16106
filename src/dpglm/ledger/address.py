"""Addresses of accounts, text without secrets; and which account pays for a fit that names none."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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


VARIABLE = "DPGLM_LEDGER"
"""The environment variable with the address of an account."""

_lock = threading.Lock()
_blocks: list[tuple[int, str, str | None]] = []
"""For each open block: its thread, its address, and the value of the variable before it."""


def _renew() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)  # another thread may have held the lock, and is gone


def push(address: str) -> None:
    """Make an account the default until ``pop``, in all threads and in processes that start meanwhile."""
    with _lock:
        if any(thread != threading.get_ident() and open_ != address for thread, open_, _ in _blocks):
            raise LedgerError(
                "another thread is in a block of another account, and a default holds for all threads: name "
                "the ledger in the estimators instead"
            )
        _blocks.append((threading.get_ident(), address, os.environ.get(VARIABLE)))
        os.environ[VARIABLE] = address


class _Suspension:
    """That no account pays, in one context of one process, until it is over.

    A context is copied into tasks and forked processes, which may outlive what they were started in. So
    whether it is over is asked here, and another process never inherits it.
    """

    def __init__(self) -> None:
        self._process, self._over = os.getpid(), False

    @property
    def holds(self) -> bool:
        """Whether fits use no ledger now."""
        return not self._over and self._process == os.getpid()

    def end(self) -> None:
        """Fits use a ledger again, wherever this context was copied to."""
        self._over = True


_SUSPENSION: ContextVar[_Suspension | None] = ContextVar("suspension of ledgers", default=None)


@contextmanager
def suspended() -> Iterator[None]:
    """A block whose fits use no ledger unless they name one: for tables that are made up, as in an audit.

    It holds for what this thread does in the block, not for other threads or for other processes.
    """
    suspension = _Suspension()
    token = _SUSPENSION.set(suspension)
    try:
        yield
    finally:
        suspension.end()
        _SUSPENSION.reset(token)


def pop() -> None:
    """End the innermost block."""
    with _lock:
        _, _, before = _blocks.pop()
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def current_account() -> str | None:
    """The address of the innermost block, empty where ledgers are suspended; None outside of all blocks."""
    suspension = _SUSPENSION.get()
    if suspension is not None and suspension.holds:
        return ""
    with _lock:
        return _blocks[-1][1] if _blocks else None


def resolved(named: str | None, carried: str | None) -> str | None:
    """The ledger of a fit: the one it names, its block's, the one it was sent with, the environment's."""
    if named is not None:
        return named
    block = current_account()
    if block is not None:
        return block or None
    return carried or os.environ.get(VARIABLE) or None
