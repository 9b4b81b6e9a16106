"""``dpglm ledger``."""

import json

import pytest
from typer.testing import CliRunner

from dpglm import Ledger, LogisticRegression
from dpglm.accounting import gaussian_mu
from dpglm.cli import app
from dpglm.ledger.extract import shares, text_chart
from dpglm.solvers import GradientDescent


@pytest.fixture
def address(tmp_path):
    return f"sqlite:///{tmp_path}/budget.db#patients"


def run(*arguments, status=0):
    found = CliRunner().invoke(app, ["ledger", *map(str, arguments)])
    assert found.exit_code == status, found.output
    assert "Traceback" not in found.output
    return found.output


def opened(address):
    run("create", address, "--epsilon", 3, "--delta", 1e-8)
    account = Ledger(address.partition("#")[0]).account("patients")
    account.enter("a chart", mu=0.2)
    return account


def test_create_says_what_can_be_done_and_refuses_a_second_time(address):
    said = run("create", address, "--epsilon", 3, "--delta", 1e-8)
    assert "one more fit at epsilon 2.98, or ten at 0.878 each" in said
    assert "already has an account" in run("create", address, "--epsilon", 3, "--delta", 1e-8, status=1)
    assert "add #account" in run(
        "create", address.partition("#")[0], "--epsilon", 3, "--delta", 1e-8, status=1
    )
    assert "epsilon" in run("create", f"{address}2", "--epsilon", -1, "--delta", 1e-8, status=1)


def test_show_has_a_table_a_chart_and_a_picture(address, tmp_path):
    account = opened(address)
    said = run("show", address, "--png", tmp_path / "spent.png")
    assert "13.3%" in said and "100 % │" in said and account.state().last.hash in said
    assert (tmp_path / "spent.png").read_bytes().startswith(b"\x89PNG")
    values = json.loads(run("show", address, "--json"))
    assert values["mu_spent"] == pytest.approx(0.2) and values["entries"] == 2
    (all_of_them,) = json.loads(run("show", address.partition("#")[0], "--json"))
    assert all_of_them == values
    account.parts("public register", ["north", "south"])
    assert "patients/north" in run("show", address.partition("#")[0])


def test_history_lists_every_entry(address):
    account = opened(address)
    account.note("looked at by the board")
    account.parts("public register", ["north", "south"])
    said = run("history", address)
    assert "a chart" in said and "looked at by the board" in said and "public register: north, south" in said
    entries = json.loads(run("history", address, "--json"))
    assert [entry["kind"] for entry in entries] == ["opening", "release", "note", "parts"]


def test_verify_prints_the_head_and_notices_a_cut(address, tmp_path):
    account = opened(address)
    head = account.state().last.hash
    assert f"2 entries, whole\nhead {head}" in run("verify", address, "--head", head)
    assert "cut off or written anew" in run("verify", address, "--head", "0" * 64, status=1)
    (tmp_path / "budget.db").write_bytes(b"nonsense" * 100)
    assert "Error: " in run("verify", address, status=1)


def test_an_exported_account_is_verified_without_the_database(address, tmp_path):
    account = opened(address)
    run("export", address, "--output", tmp_path / "out.json")
    assert account.state().last.hash in run("verify", tmp_path / "out.json")
    assert json.loads(run("export", address))["entries"]


def test_plan_charges_nothing_and_says_how_many_fits_there_are(address):
    account = opened(address)
    said = run("plan", address, "--epsilon", 1, "--fits", 3)
    assert "can be paid for: at most 6 such fits, or 3 at 1.5" in said
    assert "cannot be paid for" in run("plan", address, "--epsilon", 1, "--fits", 20, status=1)
    values = json.loads(run("plan", address, "--epsilon", 0.5, "--delta", 1e-9, "--json"))
    assert values["affordable"] and values["largest_epsilon"] > 2
    assert len(account.history()) == 2


def test_enter_charges(address):
    opened(address)
    assert "entry 2" in run("enter", address, "a count", "--epsilon", 0.1, "--delta", 0)
    assert "has mu = " in run("enter", address, "too much", "--mu", 3, status=1)


@pytest.mark.parametrize("command", ["show", "history", "verify", "export"])
def test_what_is_not_there_is_refused_in_one_line(command, address):
    assert "Error: there is no ledger at" in run(command, address, status=1)
    opened(address)
    assert "has no account 'nobody'" in run(command, address.partition("#")[0] + "#nobody", status=1)


def test_the_chart_rises_to_the_share_that_is_spent(address):
    account = opened(address)
    points = shares(account.state().terms, account.history())
    assert [share for _, share in points] == pytest.approx([0.0, 0.133], abs=1e-3)
    lines = text_chart(points, width=20, height=8)
    assert len(lines) == 9 and "█" in lines[7] and "█" not in lines[5]


def test_what_is_shown_says_that_epsilons_do_not_add_and_what_was_spent_as_one_epsilon(address):
    run("create", address, "--epsilon", 2, "--delta", 1e-6)
    account = Ledger(address.partition("#")[0]).account("patients")
    plan = LogisticRegression(0.7, solver=GradientDescent(steps=3)).plan(9_000, 5)
    for _ in range(3):
        account.reserve(plan)
    state = account.state()
    spent, delta = state.spent_epsilon(), 1 / 9_000**2
    assert 0.7 < spent < 2.0 and gaussian_mu(spent, 1e-6) >= state.spent().mu
    assert gaussian_mu(0.99 * spent, 1e-6) < state.spent().mu
    words = f"spent: epsilon {spent:g} at delta 1e-06"
    for command in (("show", address), ("history", address), ("plan", address, "--epsilon", 0.5)):
        said = " ".join(run(*command).split())
        assert words in said and "do not add up: squares of mu do" in said
    more = account.remaining().epsilon(delta=delta)
    assert f"one more fit at the delta of the last, 1.23e-08: epsilon {more:g}" in run("show", address)
    assert f"or 1 at {more:g}" in run("plan", address, "--epsilon", 0.5, "--records", 9_000)
    assert "two ways" in run("plan", address, "--epsilon", 0.5, "--records", 9, "--delta", 1e-6, status=1)
    assert json.loads(run("show", address, "--json"))["epsilon_spent"] == spent


def test_an_untouched_account_has_spent_nothing(address):
    run("create", address, "--epsilon", 2, "--delta", 1e-6)
    assert "spent: epsilon 0 at delta 1e-06" in run("show", address)
