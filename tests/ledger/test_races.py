"""Processes that are killed, and processes that write at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpglm import Ledger

from .server import postgres

HERE = Path(__file__).parent
KILLS = HERE.parents[1] / "benchmarks" / "ledger_kills.py"


def run(*command, **settings):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ,
        **settings,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_killed_processes_released_is_spent(tmp_path):
    said = run(KILLS, 40, cwd=tmp_path)
    assert "40 processes killed" in said and "the chain verifies, no model is uncharged" in said


def require_writers_within_budget(url, processes, each):
    account = Ledger(url).create("shared", epsilon=3.0, delta=1e-6)
    found = json.loads(run(HERE / "writers.py", account.address, processes, each))
    assert found["failed"] == [] and found["processes"] == processes
    assert found["made"] + found["refused"] == processes * each
    state = account.verify()
    entries = account.history()
    reserved = [entry for entry in entries if entry.kind == "reservation"]
    assert len(reserved) == found["made"] == sum(entry.kind == "commitment" for entry in entries)
    assert state.spent() <= state.terms.budget
    # the account is full: not one more fit could have been paid for
    assert found["refused"] > 0
    assert not state.affords(reserved[0].charge)


def test_a_hundred_processes_never_overspend_a_file(tmp_path):
    require_writers_within_budget(f"sqlite:///{tmp_path}/budget.db", 100, 1)


@pytest.fixture(scope="module")
def server():
    try:
        running = postgres()
        url = running.__enter__()
    except Exception as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"NO POSTGRESQL: the ledger is not tested on one, because {error}")
    yield url
    running.__exit__(None, None, None)


def test_a_hundred_processes_never_overspend_a_server(server):
    require_writers_within_budget(server, 100, 1)


def test_a_ledger_on_a_server_does_what_one_in_a_file_does(server):
    from dpglm import LogisticRegression
    from dpglm.errors import BudgetExceeded, LedgerError

    ledger = Ledger(server)
    account = ledger.create("other", epsilon=1.0, delta=1e-6)
    with pytest.raises(LedgerError, match="already has an account 'other'"):
        ledger.create("other", epsilon=1.0, delta=1e-6)
    north, south = account.parts("region, from the public register", ["north", "south"])
    plan = LogisticRegression(epsilon=0.6, delta=1e-7).plan(1000, 3)
    north.commit(north.reserve(plan))
    south.reserve(plan)
    with pytest.raises(BudgetExceeded):
        for _ in range(10):
            account.reserve(plan)
    assert account.verify(account.history()[2].hash).spent() <= account.state().terms.budget
    assert json.loads(account.export())["entries"]
    assert set(ledger.accounts()) >= {"other"}


def test_a_server_that_is_not_there_is_refused_in_one_sentence(tmp_path):
    from dpglm.errors import LedgerError

    ledger = Ledger(f"postgresql://ledger@/postgres?host={tmp_path}&connect_timeout=2")
    with pytest.raises(LedgerError, match="cannot be used: OperationalError"):
        ledger.accounts()
