"""An audit charges no account, and stops no other fit from paying: in threads, pools and tasks."""

import asyncio
import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from dpglm import Ledger, LogisticRegression
from dpglm.audit import audit
from dpglm.ledger import VARIABLE, resolved, suspended
from dpglm.solvers import GradientDescent

X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
Y = np.where(X[:, 0] > 0, 1, -1)


@pytest.fixture
def account(tmp_path, monkeypatch):
    account = Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=2.0, delta=1e-6)
    monkeypatch.setenv(VARIABLE, str(account.address))
    return account


def model():
    return LogisticRegression(0.1, delta=1e-7, classes=[-1, 1], solver=GradientDescent(steps=2))


def is_charged():
    return "ledger" in model().fit(X, Y).privacy_.public


def in_pool(pool):
    """Whether a fit there is charged; a spawned process cannot import tests, so it runs this file."""
    return pool.submit(
        eval, "__import__('runpy').run_path(file)['is_charged']()", {"file": __file__}
    ).result()


@contextmanager
def suspension_elsewhere():
    """Ledgers are suspended in another thread, as by an audit there."""
    begun, ended = threading.Event(), threading.Event()

    def hold():
        with suspended():
            begun.set()
            ended.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_fit_pays_while_another_thread_audits(account):
    begun, charged = threading.Event(), []

    class Announced(LogisticRegression):
        def fit(self, *arguments, **named):
            result = super().fit(*arguments, **named)
            begun.set()
            return result

    audited = Announced(1.0, classes=[-1, 1], solver=GradientDescent(steps=2))
    thread = threading.Thread(target=audit, args=(audited,), kwargs={"runs": 60})
    thread.start()
    begun.wait()
    while thread.is_alive() and len(charged) < 10:
        charged.append(is_charged())
    thread.join()
    assert charged and all(charged)
    assert sum(entry.kind == "reservation" for entry in account.history()) == len(charged)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_that_starts_while_a_thread_audits_pays_then_and_later(account, method):
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        with suspension_elsewhere():
            assert in_pool(pool)
        assert in_pool(pool) and is_charged()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_that_starts_within_a_suspension_pays(account, method):
    with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
        with suspended():
            assert in_pool(pool)
            assert not is_charged()
        assert in_pool(pool)


def test_a_task_that_outlives_a_suspension_pays(account):
    async def main():
        async def later():
            await asyncio.sleep(0)
            return is_charged()

        with suspended():
            task = asyncio.create_task(later())
        return await task

    assert asyncio.run(main())


def test_a_suspension_writes_nothing_into_the_environment(account):
    before = dict(os.environ)
    with suspended():
        assert dict(os.environ) == before and resolved(None, "carried") is None


def test_a_block_of_an_account_may_open_while_another_thread_audits(account, monkeypatch):
    monkeypatch.delenv(VARIABLE)
    with suspension_elsewhere(), account:
        assert is_charged()
    with account, suspension_elsewhere():
        assert is_charged()
        with suspended():
            assert not is_charged()
    assert not is_charged()
