"""Waiting for another process that holds the ledger: patient, and ended by Ctrl-C within a moment."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time

import pytest

from dpglm import Ledger
from dpglm.errors import LedgerError
from dpglm.ledger import storage

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("begin immediate")
print("held", flush=True)
sys.stdin.read()
"""
WRITER = """
import sys
from dpglm.ledger import Account, Address
account = Account(Address.parse(sys.argv[1]))
account.state()
print("ready", flush=True)
try:
    account.enter("a chart", mu=0.01)
except KeyboardInterrupt:
    sys.exit(77)
"""


@pytest.fixture
def account(tmp_path):
    return Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=2.0, delta=1e-6)


@pytest.fixture
def held(account):
    """The ledger is held by another process."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(account.address.path)], stdin=-1, stdout=-1, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.stdin.close()


def test_an_interrupt_ends_the_wait_for_another_process(account, held):
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(account.address)], stdout=-1, text=True
    ) as writer:
        assert writer.stdout.readline() == "ready\n"
        time.sleep(0.5)
        writer.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert writer.wait(timeout=60) == 77
    assert time.monotonic() - began < 20  # two minutes before; about a second on a machine that is not busy
    held.stdin.close()
    assert [entry.kind for entry in account.history()] == ["opening"]


def test_a_wait_of_several_slices_ends_with_the_lock(account, held):
    threading.Timer(2.5, held.stdin.close).start()
    account.enter("a chart", mu=0.01)
    assert len(account.history()) == 2


def test_a_wait_that_is_too_long_is_refused(account, held, monkeypatch):
    monkeypatch.setattr(storage, "_WAIT", 1.5)
    with pytest.raises(LedgerError, match="database is locked"):
        account.enter("a chart", mu=0.01)
    assert len(account.history()) == 1  # who reads does not wait for who holds the lock of writers


def test_a_reader_waits_for_one_who_stores(account):
    other = sqlite3.connect(account.address.path, isolation_level=None, check_same_thread=False)
    other.execute("begin exclusive")
    threading.Timer(2.5, other.rollback).start()
    assert len(account.history()) == 1


@pytest.mark.skipif(os.name == "nt", reason="modes of files are those of POSIX")
def test_a_new_ledger_is_for_its_owner_alone_and_an_old_one_keeps_its_mode(tmp_path):
    before = os.umask(0o022)
    try:
        path = tmp_path / "budget.db"
        account = Ledger(f"sqlite:///{path}").create("a", epsilon=2.0, delta=1e-6)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with sqlite3.connect(path) as other:
            other.execute("insert into dpglm_ledger values (1)")  # the journal of SQLite is there meanwhile
            modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
            other.rollback()
        assert modes == {0o600}
        path.chmod(0o640)
        account.enter("a chart", mu=0.01)
        Ledger(f"sqlite:///{path}").create("b", epsilon=2.0, delta=1e-6)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    finally:
        os.umask(before)
