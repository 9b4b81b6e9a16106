"""Files that were edited, cut or filled with noise: refused in one sentence, or unharmed."""

import json
import random
import shutil
import sqlite3

import pytest

from dpglm import Ledger, LogisticRegression
from dpglm.errors import BudgetExceeded, LedgerError
from dpglm.ledger.journal import digest
from dpglm.solvers import GradientDescent

PLAN = LogisticRegression(epsilon=0.5, delta=1e-9, solver=GradientDescent(steps=5)).plan(1000, 3)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledger")
    account = Ledger(f"sqlite:///{folder}/budget.db").create("a", epsilon=2.0, delta=1e-6)
    account.commit(account.reserve(PLAN))
    account.enter("a chart", mu=0.1)
    account.note("words")
    account.reserve(PLAN)
    other = Ledger(f"sqlite:///{folder}/budget.db").create("b", epsilon=2.0, delta=1e-6)
    other.reserve(PLAN)
    return folder / "budget.db"


@pytest.fixture
def damaged(original, tmp_path):
    """A copy, and what looks at it."""
    path = tmp_path / "budget.db"
    shutil.copy(original, path)
    return path


def account_at(path):
    from dpglm.ledger import Account, Address

    return Account(Address.parse(f"sqlite:///{path}#a"))


def refused(path):
    """Whether the account refuses to be verified; if it refuses to reserve, it does so in one sentence."""
    account = account_at(path)
    try:
        account.verify()
        return False
    except LedgerError as error:
        assert "\n" not in str(error)
        return True


def spent_at_least(path, least):
    """Whether a reservation is refused or adds to at least what was spent before the damage."""
    account = account_at(path)
    try:
        account.reserve(PLAN)
    except (LedgerError, BudgetExceeded):
        return True
    return account.state().spent().mu_squared > least


def test_cut_files_are_refused_or_whole(original, damaged):
    content = original.read_bytes()
    least = account_at(original).state().spent().mu_squared
    for size in [0, 1, 15, 16, 99, 100, 511, 1000, 4096, 4097, 8192, len(content) - 4096, len(content) - 1]:
        damaged.write_bytes(content[:size])
        assert refused(damaged)
        assert spent_at_least(damaged, least)


def test_files_with_flipped_bytes_are_refused_or_say_the_same(original, tmp_path):
    coins = random.Random(0)
    content = original.read_bytes()
    before = account_at(original).verify()
    least = before.spent().mu_squared
    path = tmp_path / "budget.db"
    seen = 0
    for _ in range(250):
        broken = bytearray(content)
        for _ in range(coins.choice([1, 1, 3, 40])):
            broken[coins.randrange(len(broken))] = coins.randrange(256)
        path.write_bytes(broken)
        if refused(path):
            seen += 1
        else:
            assert account_at(path).verify().last.hash == before.last.hash
        assert spent_at_least(path, least)
    assert seen > 100


def test_files_of_noise_are_refused(tmp_path):
    coins = random.Random(1)
    path = tmp_path / "budget.db"
    for content in [
        b"",
        b"SQLite format 3\0",
        coins.randbytes(5000),
        b"SQLite format 3\0" + coins.randbytes(9000),
    ]:
        path.write_bytes(content)
        assert refused(path)
        with pytest.raises(LedgerError):
            account_at(path).reserve(PLAN)
    path.unlink()
    path.mkdir()
    assert refused(path)


def edit(path, statement, *values):
    with sqlite3.connect(path) as connection:
        assert connection.execute(statement, values).rowcount != 0
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM dpglm_entry WHERE account = 'a' AND number = 5",
        "DELETE FROM dpglm_entry WHERE account = 'a' AND number = 2",
        "DELETE FROM dpglm_entry WHERE account = 'a' AND number = 0",
        "DELETE FROM dpglm_entry",
        "DELETE FROM dpglm_account",
        "UPDATE dpglm_account SET number = 3 WHERE name = 'a'",
        "UPDATE dpglm_account SET number = -1",
        "UPDATE dpglm_account SET number = 'x'",
        "UPDATE dpglm_account SET hash = 'x'",
        "UPDATE dpglm_entry SET hash = 'x' WHERE number = 1",
        "UPDATE dpglm_entry SET body = '{}' WHERE number = 5",
        "UPDATE dpglm_entry SET body = x'ff00'",
        "UPDATE dpglm_entry SET body = 7",
        "UPDATE dpglm_entry SET body = replace(body, 'reservation', 'note')",
        "UPDATE dpglm_entry SET account = 'c' WHERE account = 'a' AND number = 3",
        "UPDATE dpglm_entry SET number = 17 WHERE account = 'a' AND number = 5",
        "UPDATE dpglm_ledger SET version = 'x'",
        "UPDATE dpglm_ledger SET version = 0",
        "DELETE FROM dpglm_ledger",
        "DROP TABLE dpglm_ledger",
        "DROP TABLE dpglm_entry",
        "DROP TABLE dpglm_account",
        "ALTER TABLE dpglm_entry RENAME COLUMN body TO text",
    ],
)
def test_edited_tables_are_refused(damaged, statement):
    least = account_at(damaged).state().spent().mu_squared
    with sqlite3.connect(damaged) as connection:
        connection.execute(statement)
    connection.close()
    assert refused(damaged)
    assert spent_at_least(damaged, least)


def rewritten(path, change):
    """Change the last entry and compute its hash anew, as one does who knows how."""
    with sqlite3.connect(path) as connection:
        (body,) = connection.execute("SELECT body FROM dpglm_entry WHERE account='a' AND number=5").fetchone()
        values = json.loads(body)
        change(values)
        body = json.dumps(values, sort_keys=True, separators=(",", ":"))
        connection.execute(
            "UPDATE dpglm_entry SET body=?, hash=? WHERE account='a' AND number=5", (body, digest(body))
        )
        connection.execute("UPDATE dpglm_account SET hash=? WHERE name='a'", (digest(body),))
    connection.close()


CHANGES = {
    "less spent": lambda v: v["spent"].update({"": ["0/1", "0/1"]}),
    "nothing charged": lambda v: v.update(charge=["0/1", "0/1"]),
    "negative": lambda v: v["spent"].update({"": ["-1/1", "0/1"]}),
    "nan": lambda v: v["spent"].update({"": ["nan", "0/1"]}),
    "a number": lambda v: v["spent"].update({"": [0.0, 0.0]}),
    "not a number": lambda v: v.update(number=float("nan")),
    "another opening": lambda v: v.update(opening="0" * 64),
    "another previous": lambda v: v.update(previous="0" * 64),
    "another account": lambda v: v.update(account="b"),
    "another number": lambda v: v.update(number=6),
    "another kind": lambda v: v.update(kind="gift"),
    "a note that charges": lambda v: v.update(kind="note"),
    "an unknown part": lambda v: v.update(part="north"),
    "a new part": lambda v: v["spent"].update(north=["0/1", "0/1"]),
    "a field more": lambda v: v.update(more=1),
    "a field less": lambda v: v.pop("time"),
    "no text": lambda v: v.update(time=3),
    "deep": lambda v: v.update(content=json.loads('{"a":' * 50 + "1" + "}" * 50), charge=[[]]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_last_entry_that_was_written_anew_must_still_follow(damaged, name):
    least = account_at(damaged).state().spent().mu_squared
    rewritten(damaged, CHANGES[name])
    assert refused(damaged)
    with pytest.raises(LedgerError):
        account_at(damaged).reserve(PLAN)
    with pytest.raises(LedgerError):
        account_at(damaged).remaining()
    assert least > 0


def test_every_field_of_an_entry_is_hashed(damaged):
    with sqlite3.connect(damaged) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(dpglm_entry)")]
    connection.close()
    assert columns == ["account", "number", "body", "hash"]  # account and number are also in the body


def test_the_journal_of_another_account_does_not_pass(damaged):
    edit(damaged, "DELETE FROM dpglm_entry WHERE account = 'a'")
    edit(damaged, "UPDATE dpglm_entry SET account = 'a' WHERE account = 'b'")
    edit(
        damaged,
        "UPDATE dpglm_account SET (number, hash) = (SELECT number, hash FROM dpglm_account WHERE name='b') "
        "WHERE name='a'",
    )
    assert refused(damaged)
    with pytest.raises(LedgerError, match="another's place"):
        account_at(damaged).reserve(PLAN)
