"""Journals tell no durations: how long a fit took tells of records, and of a secret number of tries."""

import json
import re

import pytest

from dpglm import Ledger, PrivateSearch
from dpglm.ledger import extract, verify_export
from dpglm.ledger import journal as entries
from dpglm.ledger.extract import shares, text_chart

from .test_fits import X, Y, model

CLOCK = re.compile(r"\d\d:\d\d")


@pytest.fixture
def account(tmp_path):
    return Ledger(f"sqlite:///{tmp_path}/budget.db").create("a", epsilon=2.0, delta=1e-6)


def test_no_entry_states_a_time_of_day(account):
    model(account).fit(X, Y)
    PrivateSearch(model(account), {"C": [0.1, 1.0]}, runs=2, epsilon=0.3, delta=1e-7).fit(X, Y)
    account.note("approved")
    for entry in account.history():
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry.time)
    for text in (account.export(), json.dumps(extract(account))):
        assert not CLOCK.search(text)


def test_a_commitment_repeats_the_time_of_its_reservation(account, monkeypatch):
    entry = account.reserve(model().plan(300, 3))

    class Tomorrow(entries.datetime):
        @classmethod
        def now(cls, zone=None):
            return cls(2100, 1, 1, tzinfo=zone)

    monkeypatch.setattr(entries, "datetime", Tomorrow)
    assert account.commit(entry).time == entry.time < "2100"
    assert account.note("later").time == "2100-01-01"


def test_a_journal_with_seconds_of_an_earlier_version_is_read_and_shown_by_days(account, monkeypatch):
    new_entry = entries.new_entry
    seconds = iter(range(10, 60))

    def earlier(*arguments, **named):
        return new_entry(*arguments, **named | {"time": f"2026-01-31T10:00:{next(seconds)}+00:00"})

    with monkeypatch.context() as patched:
        patched.setattr("dpglm.ledger.account.new_entry", earlier)
        model(account).fit(X, Y)
    model(account).fit(X, Y)
    account.verify()
    assert verify_export(account.export()).last.number == 4
    shown = extract(account)
    assert [row["time"] for row in shown["journal"][1:3]] == ["2026-01-31"] * 2
    assert not CLOCK.search(json.dumps(shown))
    text_chart(shares(account.state().terms, account.history()))


def test_the_chart_of_a_single_day_shows_each_charge(account):
    for _ in range(3):
        account.enter("a chart", mu=0.1)
    points = shares(account.state().terms, account.history())
    assert len({time for time, _ in points}) == 4
    lines = text_chart(points)
    assert len(set(lines[-2][7:-1])) > 2
