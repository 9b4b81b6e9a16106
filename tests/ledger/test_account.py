"""Ledgers and accounts: what may be spent, what is written, what is refused."""

import json
import math
import pickle
import sqlite3
from fractions import Fraction

import pytest

import dpglm.ledger.storage
from dpglm import Ledger, LogisticRegression
from dpglm.accounting import gaussian_mu
from dpglm.errors import BudgetExceeded, DpglmError, LedgerError
from dpglm.ledger import Account, Address, verify_export
from dpglm.ledger.price import FIT_SHARE, SLACK_SHARE
from dpglm.solvers import GradientDescent


@pytest.fixture
def ledger(tmp_path):
    return Ledger(f"sqlite:///{tmp_path}/budget.db")


@pytest.fixture
def account(ledger):
    return ledger.create("patients-2026", epsilon=3, delta=1e-8, neighbours="replace-one", unit="record")


def plan(epsilon=1.0, **settings):
    return LogisticRegression(epsilon=epsilon, delta=1e-9, solver=GradientDescent(steps=5), **settings).plan(
        1000, 3
    )


def test_a_new_account_has_its_whole_budget(account):
    remaining = account.remaining()
    assert remaining.mu == pytest.approx(gaussian_mu(3.0, 0.9e-8), rel=1e-9)
    assert remaining.price.slack == pytest.approx(Fraction(1e-8) * SLACK_SHARE, rel=1e-9)
    assert remaining.epsilon() == 2.98
    assert str(remaining).startswith("one more fit at epsilon 2.98, or ten at 0.8")


def test_ten_fits_at_what_is_left_for_ten_can_be_made_and_no_eleventh(account):
    epsilon = account.remaining().epsilon(10, 1e-9)
    for _ in range(10):
        account.reserve(plan(epsilon))
    with pytest.raises(BudgetExceeded):
        account.reserve(plan(epsilon))
    assert account.verify().spent() <= account.state().terms.budget


def test_what_was_reserved_and_not_committed_stays_spent(account):
    entry = account.reserve(plan())
    spent = account.state().spent()
    assert spent.mu_squared == entry.charge.mu_squared > 0
    account.commit(entry)
    assert account.state().spent() == spent
    assert [entry.kind for entry in account.history()] == ["opening", "reservation", "commitment"]


def test_the_journal_keeps_the_plan_so_that_it_can_be_priced_again(account):
    from dpglm.ledger import price_of_plan
    from dpglm.plan import Plan

    entry = account.reserve(plan())
    again = Plan.from_dict(account.history()[1].content["plan"])
    assert again == plan()
    assert price_of_plan(again, account.state().terms.budget.slack * FIT_SHARE) == entry.charge


def test_an_exceeded_budget_says_what_is_left_and_which_epsilon_fits(account):
    account.enter("much", mu=0.9 * account.remaining().mu)
    with pytest.raises(
        BudgetExceeded, match="has mu = 0.2389 left and this costs mu = 0.5.*would fit"
    ) as info:
        account.reserve(plan(3.0), plan)
    error = info.value
    assert 0 < error.epsilon < 3 and error.remaining < error.needed
    account.reserve(plan(error.epsilon))
    with pytest.raises(BudgetExceeded):
        account.reserve(plan(error.epsilon))
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.remaining, copy.needed, copy.epsilon, str(copy)) == (
        error.remaining,
        error.needed,
        error.epsilon,
        str(error),
    )
    assert isinstance(error, DpglmError) and isinstance(error, ValueError)


def test_old_names_of_what_remains_warn_and_forward(account):
    with pytest.warns(FutureWarning, match="remaining"):
        assert account.left() == account.remaining()
    with pytest.raises(BudgetExceeded) as error:
        account.enter("too much", mu=100.0)
    with pytest.warns(FutureWarning, match="remaining"):
        assert error.value.left == error.value.remaining == account.remaining().mu


def test_an_empty_account_has_nothing_to_offer(account):
    account.enter("all", mu=account.remaining().mu)
    assert account.remaining().mu < 1e-8
    assert str(account.remaining()) == "nothing: no further fit"
    with pytest.raises(BudgetExceeded) as info:
        account.reserve(plan(), plan)
    assert info.value.epsilon is None


def test_slack_never_runs_out_by_fits(account):
    batches = LogisticRegression(epsilon=0.01, delta=1e-9, solver=GradientDescent(batch_size=50, steps=5))
    before = account.state().remaining().price.slack
    entry = account.reserve(batches.plan(1000, 3))
    assert 0 < entry.charge.slack <= before * FIT_SHARE


def test_releases_of_others_are_charged(account):
    assert account.enter("a histogram", mu=0.1).charge.mu == pytest.approx(0.1)
    pure = account.enter("a count", epsilon=0.1, delta=1e-10)
    assert pure.charge.slack >= Fraction(1e-10)
    assert pure.charge.mu == pytest.approx(math.sqrt(2 * math.pi) * math.tanh(0.05), rel=1e-2)
    earlier = account.enter("a fit of last year", plan=plan(0.5))
    assert earlier.kind == "release" and earlier.content["plan"]["solver"] == "gradient descent"
    with pytest.raises(BudgetExceeded, match="a slack of 5e-09, of which"):
        account.enter("too much slack", epsilon=0.1, delta=5e-9)
    for bad in [{}, {"mu": 0.1, "epsilon": 1.0, "delta": 0.0}, {"epsilon": 1.0}, {"delta": 0.1}]:
        with pytest.raises(LedgerError, match="entered by its mu"):
            account.enter("nothing", **bad)
    for bad in [{"mu": -1.0}, {"mu": math.nan}, {"mu": math.inf}, {"epsilon": math.inf, "delta": 0.0}]:
        with pytest.raises(ValueError):
            account.enter("no number", **bad)
    account.verify()


def test_another_relation_or_unit_is_refused_with_the_reason(ledger, account):
    with pytest.raises(LedgerError, match="is for replace-one neighbours and the fit for zero-out"):
        account.reserve(plan(neighbours="zero-out"))
    persons = ledger.create("persons", epsilon=1.0, delta=1e-6, unit="person")
    with pytest.raises(LedgerError, match="protects a person and a fit protects a record"):
        persons.reserve(plan())
    assert len(account.history()) == len(persons.history()) == 1


def test_a_fit_without_noise_is_refused(account):
    with pytest.raises(LedgerError, match="without noise"):
        account.reserve(LogisticRegression(epsilon=math.inf).plan(1000, 3))


def test_disjoint_parts_cost_what_the_dearest_costs(account):
    north, south = account.parts("region of the clinic, from the public register", ["north", "south"])
    for part in (north, south):
        for _ in range(3):
            part.reserve(plan())
    three = 3 * north.history()[2].charge.mu_squared
    assert account.state().spent().mu_squared == three
    account.reserve(plan(0.5))
    assert account.state().spent("north").mu_squared > three
    north.enter("the rest", mu=north.remaining().mu)
    with pytest.raises(BudgetExceeded):
        account.reserve(plan(0.1))
    south.reserve(plan(0.1))
    state = account.verify()
    assert all(state.spent(part) <= state.terms.budget for part in state.parts)


def test_parts_are_declared_once_and_by_name(account):
    for bad in [["one"], ["a", "a"], ["a", "b/c"], []]:
        with pytest.raises(LedgerError, match="at least two different names"):
            account.parts("rule", bad)
    account.parts("rule", ["a", "b"])
    with pytest.raises(LedgerError, match="has parts already: a, b"):
        account.parts("rule", ["c", "d"])
    with pytest.raises(LedgerError, match="no part 'c'"):
        Account(Address.parse(f"{account.address}/c")).reserve(plan())
    account.verify()


def test_an_account_is_opened_once(ledger, account):
    with pytest.raises(LedgerError, match="already has an account"):
        ledger.create("patients-2026", epsilon=100.0, delta=1e-8)
    assert ledger.accounts() == ["patients-2026"]
    assert account.state().terms.epsilon == 3.0


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": math.inf, "delta": 1e-6},
        {"epsilon": -1.0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "delta": math.nan},
        {"epsilon": 1.0, "delta": 1e-6, "neighbours": "other"},
        {"epsilon": 1.0, "delta": 1e-6, "unit": ""},
    ],
)
def test_an_account_without_a_promise_is_refused(ledger, bad):
    with pytest.raises(ValueError):
        ledger.create("bad", **bad)
    with pytest.raises(LedgerError):
        ledger.accounts()


@pytest.mark.parametrize("name", ["", "a/b", "a#b", "a b", "../x", "x" * 101, None])
def test_names_are_plain(ledger, name):
    with pytest.raises(LedgerError, match="letters, digits"):
        ledger.create(name, epsilon=1.0, delta=1e-6)


def test_an_export_is_checked_without_the_database(account):
    account.reserve(plan())
    account.note("checked by the board")
    content = account.export()
    state = verify_export(content)
    assert state.last.hash == account.state().last.hash
    assert state.spent() == account.state().spent()
    values = json.loads(content)
    values["entries"][1]["body"] = values["entries"][1]["body"].replace("reservation", "note")
    with pytest.raises(LedgerError, match="was changed"):
        verify_export(json.dumps(values))
    with pytest.raises(LedgerError, match="cut off"):
        verify_export(content, head="0" * 64)
    for bad in ["", "[]", "{}", "nan", '{"format": "other", "entries": []}']:
        with pytest.raises(LedgerError, match="cannot be read"):
            verify_export(bad)
    del values["entries"][1:]
    assert verify_export(json.dumps(values)).spent().mu == 0


def test_a_journal_that_was_cut_back_is_seen_by_a_hash_that_was_kept(account, tmp_path):
    account.reserve(plan())
    backup = (tmp_path / "budget.db").read_bytes()
    head = account.reserve(plan()).hash
    account.verify(head)
    (tmp_path / "budget.db").write_bytes(backup)
    account.verify()  # an earlier state is whole in itself
    with pytest.raises(LedgerError, match="cut off or written anew"):
        account.verify(head)


def test_a_later_version_is_refused(account, tmp_path):
    with sqlite3.connect(tmp_path / "budget.db") as connection:
        connection.execute("UPDATE dpglm_ledger SET version = 2")
    with pytest.raises(
        LedgerError, match="is of version 2, and this dpglm knows versions up to 1: update it"
    ):
        account.reserve(plan())
    assert dpglm.ledger.storage.VERSION == 1


def test_a_ledger_is_never_made_by_a_fit_or_a_look(ledger, tmp_path):
    with pytest.raises(LedgerError, match="there is no ledger at"):
        ledger.account("patients-2026")
    with pytest.raises(LedgerError, match="there is no ledger at"):
        ledger.accounts()
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_wal_mode_does_the_same(account, tmp_path):
    with sqlite3.connect(tmp_path / "budget.db") as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    account.commit(account.reserve(plan()))
    assert account.verify().last.number == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (3, "must be a string"),
        ("budget.db", "SQLite or PostgreSQL"),
        ("mysql://x/y#a", "SQLite or PostgreSQL"),
        ("sqlite:///#a", "is a file"),
        ("sqlite:///:memory:#a", "is a file"),
        ("sqlite:///x.db?mode=ro#a", "without options"),
        ("sqlite:///x.db#a b", "letters, digits"),
        ("postgresql://me:secret@host/db#a", "must not hold a password"),
        ("postgresql://me%3Asecret@host/db#a", "must not hold a password"),
        ("postgresql://me@host/db?password=secret#a", "must not hold a password"),
        ("postgresql://me@host/db?passfile=x#a", "must not hold a password"),
        ("postgresql://me@host/db?options=-c#a", "options"),
        ("postgresql://[/db#a", "cannot be read"),
        ("sqlite:///x.db#/part", "needs an account"),
    ],
)
def test_addresses_that_are_refused(text, words):
    with pytest.raises(LedgerError, match=words) as info:
        Address.parse(text)
    assert "secret" not in str(info.value)


def test_addresses_that_are_read():
    for text in [
        "sqlite:////tmp/x.db#a",
        "postgresql://me@host:5432/db?sslmode=require#a/north",
        "sqlite:///x.db",
    ]:
        assert str(Address.parse(text)) == text
    assert Address.parse("sqlite:///x.db#a").absolute().path.is_absolute()
    with pytest.raises(LedgerError, match="has no #account"):
        Ledger("sqlite:///x.db#a")
