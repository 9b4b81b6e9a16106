"""The tables of a ledger, in SQLite or PostgreSQL.

An entry is a text and its hash; nothing else about it is stored. A row for each account holds the number and
hash of its last entry, and is what writers lock. Connections live as long as one transaction, so that forked
processes share none. Errors of the database become a `LedgerError`, whatever they are.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from time import monotonic, sleep
from typing import Any, Self, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool

from ..errors import DpglmError, LedgerError
from .address import Address
from .journal import Entry, read_entry

VERSION = 1
"""The version of the tables. A later one is refused; an earlier one would be brought up to date."""

_WAIT = 120
"""Seconds that a writer waits for others."""

_SLICE = 1.0
"""Seconds after which one who waits for others looks for an interrupt: SQLite itself does not."""

_PAUSE = 0.02

Result = TypeVar("Result")

_TABLES = sa.MetaData()
_META = sa.Table("dpglm_ledger", _TABLES, sa.Column("version", sa.Integer, nullable=False))
_ACCOUNTS = sa.Table(
    "dpglm_account",
    _TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)
_ENTRIES = sa.Table(
    "dpglm_entry",
    _TABLES,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)
_OF: sa.BindParameter[str] = sa.bindparam("of")
_VERSIONS = sa.select(_META.c.version)
_HEAD = sa.select(_ACCOUNTS.c.number, _ACCOUNTS.c.hash).where(_ACCOUNTS.c.name == _OF)
_HEAD_LOCKED = _HEAD.with_for_update()
_NEW_HEAD = _ACCOUNTS.update().where(_ACCOUNTS.c.name == _OF)
_LAST = sa.select(sa.func.max(_ENTRIES.c.number)).where(_ENTRIES.c.account == _OF)
_ALL = (
    sa.select(_ENTRIES.c.number, _ENTRIES.c.body, _ENTRIES.c.hash)
    .where(_ENTRIES.c.account == _OF)
    .order_by(_ENTRIES.c.number)
)
_WANTED = _ALL.where(_ENTRIES.c.number.in_(sa.bindparam("wanted", expanding=True)))
_CREATION_LOCK = 0x6470676C6D  # any number will do, if all use the same


class Journal:
    """A transaction on the tables of a ledger."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def require_version(self) -> None:
        """Refuse tables that are missing, or of a version that this dpglm does not know."""
        try:
            versions = list(self.connection.execute(_VERSIONS).scalars())
        except (sa.exc.OperationalError, sa.exc.ProgrammingError) as error:
            raise LedgerError(
                f"this is no ledger (`dpglm ledger create` makes one): {_reason(error)}"
            ) from None
        if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
            raise LedgerError("the ledger does not say of which version it is")
        if versions[0] > VERSION:
            raise LedgerError(
                f"the ledger is of version {versions[0]}, and this dpglm knows versions up to {VERSION}: "
                "update it"
            )

    def create(self) -> None:
        """Make the tables, unless they are there."""
        if self.connection.dialect.name == "postgresql":
            self.connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
        if not sa.inspect(self.connection).has_table(_META.name):
            _TABLES.create_all(self.connection, checkfirst=False)
            self.connection.execute(_META.insert().values(version=VERSION))

    def names(self) -> list[str]:
        """The names of all accounts."""
        return list(self.connection.execute(sa.select(_ACCOUNTS.c.name).order_by(_ACCOUNTS.c.name)).scalars())

    def ends(self, account: str, lock: bool) -> tuple[Entry, Entry | None, Entry]:
        """The opening, the last entry but one and the last entry of an account, each read and checked."""
        this = {"of": account}
        row = self.connection.execute(_HEAD_LOCKED if lock else _HEAD, this).one_or_none()
        if row is None:
            raise LedgerError(f"the ledger has no account {account!r}")
        number, head = row
        if not isinstance(number, int) or number < 0:
            raise LedgerError("the journal is broken: an account has no last entry")
        wanted = sorted({0, max(number - 1, 0), number})
        found = {entry.number: entry for entry in self._read(account, _WANTED, {**this, "wanted": wanted})}
        last = self.connection.execute(_LAST, this).scalar()
        if last != number or set(found) != set(wanted) or found[number].hash != head:
            raise LedgerError("the journal is broken: its last entry is not the one that the account names")
        return found[0], found[number - 1] if number else None, found[number]

    def entries(self, account: str) -> Iterator[Entry]:
        """All entries of an account in their order."""
        yield from self._read(account, _ALL, {"of": account})

    def append(self, entry: Entry) -> None:
        """Add an entry; the row of its account must be locked, or new."""
        head = {"number": entry.number, "hash": entry.hash}
        self.connection.execute(_ENTRIES.insert(), {"account": entry.account, "body": entry.body, **head})
        if entry.number == 0:
            self.connection.execute(_ACCOUNTS.insert(), {"name": entry.account, **head})
        else:
            self.connection.execute(_NEW_HEAD, {"of": entry.account, **head})

    def _read(self, account: str, query: sa.Select[Any], values: dict[str, object]) -> Iterator[Entry]:
        for number, body, digest in self.connection.execute(query, values):
            entry = read_entry(body, digest)
            if entry.number != number or entry.account != account:
                raise LedgerError("the journal is broken: an entry stands in another's place")
            yield entry


@contextmanager
def transaction(address: Address, *, write: bool = False, create: bool = False) -> Iterator[Journal]:
    """A transaction, in which no one else writes if it writes; all or nothing of it is kept."""
    if address.is_sqlite and not create and not address.path.exists():
        raise LedgerError(f"there is no ledger at {address.path}: `dpglm ledger create` makes one")
    try:
        engine = _engine(address.url, create)
        # a reader sees one moment; a writer sees what was written before it got the lock
        level = (
            {} if address.is_sqlite else {"isolation_level": "READ COMMITTED" if write else "REPEATABLE READ"}
        )
        with engine.connect().execution_options(dpglm_write=write, **level) as connection, connection.begin():
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text(f"SET LOCAL lock_timeout = '{_WAIT}s'"))
                # a server that confirms before it has stored could forget what was spent
                connection.execute(sa.text("SET LOCAL synchronous_commit = on"))
            journal = Journal(connection)
            if create:
                journal.create()
            journal.require_version()
            yield journal
    except DpglmError:
        raise
    except (
        sa.exc.SQLAlchemyError,
        sqlite3.Error,
        OSError,
        UnicodeError,
        ValueError,
        TypeError,
        OverflowError,
    ) as e:
        raise LedgerError(f"the ledger at {address.url} cannot be used: {_reason(e)}") from None


def require_sound_file(journal: Journal) -> None:
    """Refuse an SQLite file whose pages are damaged."""
    if journal.connection.dialect.name == "sqlite":
        found = list(journal.connection.execute(sa.text("PRAGMA integrity_check(1)")).scalars())
        if found != ["ok"]:
            raise LedgerError("the ledger's file is damaged")


def _reason(error: BaseException) -> str:
    """The first line of what a database says, without statements or parameters."""
    origin = getattr(error, "orig", None) or error
    lines = str(origin).strip().splitlines() or ["no reason given"]
    return f"{type(origin).__name__}: {lines[0]}"


def _wait_for_lock(action: Callable[[], Result]) -> Result:
    """Do what another connection may have locked out, in slices of waiting between which Ctrl-C is seen."""
    deadline = monotonic() + _WAIT
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > deadline:
                raise
            sleep(_PAUSE)  # SQLite has waited already, unless it saw that this cannot help


class _WaitingCursor(sqlite3.Cursor):
    """Statements that wait for locks."""

    def execute(self, *arguments: Any) -> Self:
        return _wait_for_lock(lambda: super(_WaitingCursor, self).execute(*arguments))


class _WaitingConnection(sqlite3.Connection):
    """A connection whose statements and commits wait for locks."""

    def cursor(self, factory: Any = _WaitingCursor) -> Any:
        return super().cursor(factory)

    def commit(self) -> None:
        _wait_for_lock(super().commit)


@lru_cache(maxsize=32)
def _engine(url: str, create: bool) -> Engine:
    address = Address.parse(url)
    if not address.is_sqlite:
        try:
            return sa.create_engine(
                "postgresql+psycopg" + url.removeprefix("postgresql"),
                poolclass=NullPool,
            )
        except ModuleNotFoundError:
            raise LedgerError("a ledger in PostgreSQL needs psycopg: pip install 'dpglm[postgres]'") from None
    mode = "rwc" if create else "rw"
    uri = f"file:{quote(str(address.path.resolve()))}?mode={mode}"

    def connect() -> sqlite3.Connection:
        if create:  # for its owner alone; SQLite gives its other files the mode of this one
            with suppress(FileExistsError):
                os.close(os.open(address.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = sqlite3.connect(
            uri, uri=True, timeout=_SLICE, isolation_level=None, factory=_WaitingConnection
        )
        connection.cursor().execute("PRAGMA synchronous = EXTRA")
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("dpglm_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine
