"""The way from a file to predictions in the shell."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpglm import Ledger
from dpglm.cli import app
from dpglm.commands import tables
from dpglm.estimators.stored import ESTIMATORS
from dpglm.schema import Schema

ROOT = Path(__file__).resolve().parents[1]

SCHEMA = """
[columns]
age = { type = "number", low = 18, high = 90 }
job = { type = "category", levels = ["clerk", "nurse"] }
home = { type = "target", classes = ["owned", "rented"] }
"""
MARK = "8675309"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 90, 2_000)
    raw = pd.DataFrame({"age": age, "job": rng.choice(["clerk", "nurse"], 2_000)})
    raw["home"] = np.where(age > 50, "owned", "rented")
    raw.to_csv("data.csv", index=False)
    raw.to_parquet("data.parquet")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def test_from_a_file_to_predictions(folder):
    for data, stream in (("data.csv", []), ("data.parquet", ["--stream"])):
        told = run("fit", data, "schema.toml", "--epsilon", 1, "--out", "model.json", *stream).stdout
        assert "epsilon" in told and "job=nurse" in told and "intercept" in told
        printed = run("predict", "model.json", data).stdout.splitlines()
        assert printed[0] == "prediction" and len(printed) == 2_001
        right = np.array(printed[1:]) == pd.read_csv("data.csv")["home"]
        assert right.mean() > 0.9
    run("predict", "model.json", "data.csv", "--proba", "--out", "p.csv")
    assert list(pd.read_csv("p.csv").columns) == ["owned", "rented"]
    values = json.loads(run("predict", "model.json", "data.csv", "--json").stdout)
    assert len(values) == 2_000 and set(values[0]) == {"prediction"}
    stated = json.loads(run("fit", "data.csv", "schema.toml", "--out", "m.json", "--json").stdout)
    assert stated["privacy"]["epsilon"] <= 1 and set(stated["fits"][0]["coefficients"]) >= {
        "age",
        "job=clerk",
    }


def test_a_fit_is_paid_for_by_an_account_until_its_budget_is_spent(folder):
    url = f"sqlite:///{folder / 'budget.db'}"
    account = Ledger(url).create("homes", epsilon=1.1, delta=1e-6)
    fit = "fit", "data.csv", "schema.toml", "--out", "m.json", "--epsilon", 1.0, "--ledger", f"{url}#homes"
    assert "homes" in run(*fit).stdout
    assert len(list(account.history())) == 3  # the opening, the reservation and its commitment
    (folder / "m.json").unlink()
    refused = run(*fit, code=2)
    assert "Error: " in refused.stderr and "left" in refused.stderr and not (folder / "m.json").exists()


def test_a_plan_needs_no_data(folder):
    assert "epsilon" in run("plan", "schema.toml", "--rows", 50_000, "--epsilon", 0.5).stdout
    told = run("plan", "schema.toml", "--rows", 50_000, "--stream", "--model", "LinearSVC", code=2).stderr
    assert "resident table" in told
    assert json.loads(run("plan", "schema.toml", "--rows", 50_000, "--json").stdout)["n_records"] == 50_000


def test_a_draft_has_names_and_only_a_peek_has_values(folder):
    by_name = run("schema", "draft", "data.csv", "--target", "home").stdout
    assert 'age = { type = "?" }' in by_name and "clerk" not in by_name
    assert 'age = { type = "number", low = "?"' in run("schema", "draft", "data.parquet").stdout
    for data in ("data.csv", "data.parquet"):
        peeked = run("schema", "draft", data, "--target", "home", "--peek").stdout
        assert peeked.startswith("# NOT PRIVATE") and '"clerk", "nurse"' in peeked
        (folder / "peeked.toml").write_text(peeked)
        run("fit", data, "peeked.toml", "--out", "model.json")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["fit", "none.csv", "schema.toml", "--out", "m.json"], "there is no file 'none.csv'"),
        (["fit", "data.csv", "none.toml", "--out", "m.json"], "none.toml: No such file"),
        (["fit", "data.csv", "schema.toml", "--out", "no/m.json"], "there is no folder 'no'"),
        (["fit", "data.csv", "schema.toml", "--out", "m.json", "--model", "Ridge"], "Ridge needs a range"),
        (["fit", "data.csv", "schema.toml", "--out", "m.json", "--model", "Tree"], "--model must be one of"),
        (["fit", "data.csv", "schema.toml", "--out", "m.json", "--epsilon", "-1"], "epsilon"),
        (["fit", "other.csv", "schema.toml", "--out", "m.json"], "the table has no column 'age', 'job'"),
        (["fit", "extra.csv", "schema.toml", "--out", "m.json"], "does not declare column 'extra'"),
        (["predict", "schema.toml", "data.csv"], "this is no model of dpglm"),
        (["predict", "data.parquet", "data.csv"], "is no text"),
        (["schema", "draft", "data.jsonl"], "JSON lines declare no columns"),
    ],
)
def test_errors_are_one_sentence_that_names_the_fact_and_no_value(arguments, error, folder):
    (folder / "other.csv").write_text(f"{MARK},home\n{MARK},owned\n")
    (folder / "extra.csv").write_text(f"age,job,home,extra\n1,clerk,owned,{MARK}\n")
    (folder / "data.jsonl").write_text(f'{{"age": "{MARK}"}}\n')
    result = run(*arguments, code=2)
    assert error in result.stderr and MARK not in result.output
    assert result.stderr.count("Error: ") == 1 and "Traceback" not in result.output


def test_the_commands_of_the_page_on_schemas_run(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    namespace = {}
    exec(page.split("```python\n")[1].split("```")[0], namespace)
    namespace["table"].to_csv("data.csv", index=False)
    (tmp_path / "schema.toml").write_text(namespace["schema"].to_toml())
    commands = page.split("```console\n")[1].split("```")[0].splitlines()
    assert len(commands) == 4
    for command in commands:
        run(*shlex.split(command)[1:])
    assert (tmp_path / "predictions.csv").stat().st_size > 20_000


def test_the_schema_of_adult_has_fewer_than_twenty_lines_and_reads_its_records():
    text = (ROOT / "examples" / "adult.toml").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 20
    schema = Schema.from_toml(text)
    line = "39,?,77516,Bachelors,13,Never-married,Sales,Husband,White,Male,2174,0,40,Cuba,<=50K"
    raw = dict(zip(schema.columns, [[cell] for cell in line.split(",")], strict=True))
    names = np.array(schema.features)[schema.encode(raw).indices]
    assert {"workclass (other)", "education=Bachelors", "native_country (other)", "age"} <= set(names)
    assert schema.read_target(raw).tolist() == ["<=50K"]


def test_the_models_that_the_commands_name_are_those_that_can_be_stored():
    assert tuple(ESTIMATORS) == tables.MODELS


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "dpglm", "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "predict" in told.stdout


def test_an_unexpected_error_is_not_quoted(folder, monkeypatch):
    def broken(*_):
        raise RuntimeError(f"secret {MARK}")

    monkeypatch.setattr(tables, "source_of_file", broken)
    result = run("fit", "data.csv", "schema.toml", "--out", "m.json", code=3)
    assert "unexpected RuntimeError" in result.stderr and MARK not in result.output
