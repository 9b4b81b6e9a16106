"""The way from a file to predictions in the shell."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skops.io
import yaml
from typer.testing import CliRunner

from dpglm import Ledger, __version__
from dpglm.audit import Finding
from dpglm.audit import Report as Findings
from dpglm.cli import app, commands
from dpglm.datasets import write_adult
from dpglm.estimators.stored import ESTIMATORS, model_from_json, model_to_json
from dpglm.schema import Schema

from . import fuzzed_commands

ROOT = Path(__file__).resolve().parents[1]

SCHEMA = """
[columns]
age = { type = "number", low = 18, high = 90 }
job = { type = "category", levels = ["clerk", "nurse"] }
home = { type = "target", classes = ["owned", "rented"] }
"""
MARK = "8675309"
COMMAND = re.compile(
    r"^dpglm (?:audit|check|evaluate|example|export|fit|ledger|plan|predict|report|schema|show)\b.*", re.M
)


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


@pytest.mark.parametrize("kind", ["parquet", "csv.gz"])
def test_a_file_with_a_damaged_part_costs_nothing(folder, kind):
    raw, account = pd.read_csv("data.csv"), Ledger("sqlite:///b.db").create("a", epsilon=9.0, delta=1e-3)
    name = f"bad.{kind}"
    if kind == "parquet":
        raw.to_parquet(name, row_group_size=500, compression="zstd")
    else:
        raw.to_csv(name, index=False)
    content = bytearray(Path(name).read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2_000] = b"\x5a" * 2_000  # names, types and the number of rows stay readable
    Path(name).write_bytes(content)
    model = "schema.toml", "--epsilon", 1, "--ledger", str(account.address)
    run("fit", "data.csv", "schema.toml", "--out", "m.json", "--epsilon", 1)
    for command in (("fit", name, *model, "--out", "x.json"), ("evaluate", "m.json", name, *model[1:])):
        run(*command, "--stream", code=2)
        assert len(account.history()) == 1
    run("fit", "data.parquet", *model, "--out", "x.json", "--stream")
    assert len(account.history()) == 3


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
    names = {row["name"] for row in stated["fits"][0]["coefficients"]}
    assert stated["privacy"]["epsilon"] <= 1 and names >= {"age", "job=clerk", "intercept"}


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (["--out", "."], "'.' is a folder"),
        (["--out", "m.json", "--report", "parts"], "'parts' is a folder"),
        (["--out", "m.json", "--report", "x" * 300], "File name too long"),
        (["--out", "m.json", "--report", "m.json"], "is named twice"),
        (["--out", "data.csv"], "is named twice"),
        (["--out", "m.json", "--report", "schema.toml"], "is named twice"),
    ],
)
def test_a_file_that_cannot_be_written_costs_nothing_and_leaves_nothing(files, error, folder):
    (folder / "parts").mkdir()
    account = Ledger(f"sqlite:///{folder / 'budget.db'}").create("homes", epsilon=3, delta=1e-6)
    before = (folder / "data.csv").read_bytes()
    told = run("fit", "data.csv", "schema.toml", "--ledger", "sqlite:///budget.db#homes", *files, code=2)
    assert error in told.stderr and len(account.history()) == 1
    assert (folder / "data.csv").read_bytes() == before and not (folder / "m.json").exists()


def test_the_version_is_printed():
    assert run("--version").stdout == f"dpglm {__version__}\n"


def test_coefficients_without_errors_are_printed_with_two_digits_and_a_word(folder):
    """Six digits of noise look like a result; the file of the model has all of them."""
    told = run("fit", "data.csv", "schema.toml", "--epsilon", 0.5, "--out", "model.json").stdout
    assert told.count("This solver releases no standard errors: the coefficients are for prediction.") == 1
    shown = dict(line.rsplit(maxsplit=1) for line in told.split("units of the columns")[1].splitlines()[1:5])
    exact = model_from_json((folder / "model.json").read_text()).raw_coefficients()
    assert {name: float(value) for name, value in shown.items() if name in exact.values} == {
        name: float(f"{value:.2g}") for name, value in exact.values.items()
    }
    page = run("report", "model.json", "--out", "report.html") and (folder / "report.html").read_text()
    card = run("export", "model.json", "--card", "card.md") and (folder / "card.md").read_text()
    for name, value in exact.values.items():
        assert f"{value:.5g}" not in page and f"{value:.4g}" not in card, name


def test_a_fit_is_paid_for_by_an_account_until_its_budget_is_spent(folder):
    url = f"sqlite:///{folder / 'budget.db'}"
    account = Ledger(url).create("homes", epsilon=1.1, delta=1e-6)
    fit = "fit", "data.csv", "schema.toml", "--out", "m.json", "--epsilon", 1.0, "--ledger", f"{url}#homes"
    assert "homes" in run(*fit).stdout
    assert len(list(account.history())) == 3  # the opening, the reservation and its commitment
    (folder / "m.json").unlink()
    refused = run(*fit, code=2)
    assert "Error: " in refused.stderr and "left" in refused.stderr and not (folder / "m.json").exists()


def test_scores_are_paid_for_and_have_intervals(folder):
    run("fit", "data.csv", "schema.toml", "--epsilon", 1, "--out", "model.json")
    url = f"sqlite:///{folder / 'budget.db'}"
    Ledger(url).create("homes", epsilon=2.0, delta=1e-6)
    score = (
        "evaluate",
        "model.json",
        "data.csv",
        "--epsilon",
        2.0,
        "--delta",
        1e-8,
        "--ledger",
        f"{url}#homes",
    )
    told = run(*score, "--metric", "accuracy", "--metric", "auc").stdout
    assert "accuracy" in told and "95 % interval" in told and "homes" in told and "epsilon" in told
    assert "left" in run(*score, code=2).stderr
    streamed = json.loads(
        run("evaluate", "model.json", "data.parquet", "--epsilon", 50, "--stream", "--json").stdout
    )
    (one,) = streamed["scores"]
    assert one["metric"] == "accuracy" and 0.9 < one["low"] <= one["value"] <= one["high"] <= 1
    assert "r2 needs" in run(
        "evaluate", "model.json", "data.csv", "--epsilon", 1, "--metric", "r2", code=2
    ).stderr  # fmt: skip


def unreadable(folder, n=2_000):
    """A file with dates and amounts as people write them, and the schema of somebody who expects others."""
    rng = np.random.default_rng(0)
    raw = pd.DataFrame(
        {
            "admitted": [f"{day:02d}.04.2026" for day in rng.integers(1, 29, n)],
            "cost": [f"{cost:,.2f}" for cost in rng.uniform(1_000, 5_000, n)],
            "ward": rng.choice(["Surgery", "internal"], n),
            "died": rng.choice(["yes", "no"], n),
        }
    )
    raw.to_csv("raw.csv", index=False)
    (folder / "raw.toml").write_text("""
[columns]
admitted = { type = "date", low = 2026-01-01, high = 2026-12-31 }
cost = { type = "number", low = 0, high = 10000 }
ward = { type = "category", levels = ["surgery", "internal"] }
died = { type = "target", classes = ["yes", "no"] }
""")


@pytest.mark.filterwarnings("always::dpglm.errors.PrivacyWarning")
def test_a_file_whose_cells_cannot_be_read_is_no_longer_fitted_in_silence(folder):
    unreadable(folder)
    told = run("fit", "raw.csv", "raw.toml", "--epsilon", 8, "--out", "m.json", "--report", "r.html")
    assert re.search(r"Warning: only about \d % \(± \d+ %\) of the records counted", told.stderr)
    said = "of the records counted; from the"
    for text in (told.stdout, run("show", "m.json").stdout, (folder / "r.html").read_text()):
        assert said in " ".join(text.split())
    stated = json.loads(run("show", "m.json", "--json").stdout)
    assert said in stated["privacy"]["record_share"]


def test_a_fit_that_cannot_know_how_many_records_were_read_says_so_before_its_coefficients(folder):
    unreadable(folder)
    options = "--epsilon", 8, "--out", "m.json", "--quiet"
    told = run("fit", "raw.csv", "raw.toml", *options, "--model", "LinearSVC")
    assert told.stderr.startswith("Note: which share of the records counted cannot be known")
    assert "dpglm check" in told.stderr and "Warning" not in told.stderr
    known = run("fit", "data.csv", "schema.toml", *options)
    assert "Note:" not in known.stderr


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_a_check_counts_cells_that_cannot_be_read_and_an_account_pays(folder, stream):
    unreadable(folder)
    account = f"sqlite:///{folder / 'budget.db'}#raw"
    Ledger(account.split("#")[0]).create("raw", epsilon=1.2, delta=1e-6)
    options = "raw.csv", "raw.toml", "--epsilon", 1, *stream
    told = run("check", *options, "--ledger", account, "--quiet").stdout
    assert re.match(r"2,000 records, each share ± \d", told)
    for line in (
        "of the records count for nothing in a fit",
        "of the cells of 'admitted' cannot be read",
        "of the cells of 'cost' cannot be read",
        "of the cells of 'ward' have a level that is not declared",
        "(1, 2.5e-07)-differential privacy",
    ):
        assert line in told
    stated = json.loads(run("check", *options, "--json").stdout)
    share = {(one["column"], one["kind"]): one["value"] for one in stated["shares"]}
    assert share["cost", "unreadable"] > 0.9 and 0.4 < share["ward", "unknown level"] < 0.6
    assert abs(share["died", "missing"]) < 0.1 and share[None, "null record"] > 0.9
    assert "BudgetExceeded" not in run("check", *options, "--ledger", account, code=2).stderr
    assert len(list(Ledger(account.split("#")[0]).account("raw").history())) == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["raw.csv", "raw.toml", "--epsilon", -1], "epsilon must be"),
        (["raw.csv", "raw.toml", "--epsilon", 1, "--neighbours", "add-remove"], "use neighbours="),
        (["raw.csv", "schema.toml", "--epsilon", 1], "the table has no column 'age'"),
        (["raw.csv", "no.toml", "--epsilon", 1], "no.toml: No such file"),
        (["raw.csv", "raw.csv", "--epsilon", 1], "raw.csv: "),
    ],
)
def test_a_check_that_cannot_be_made_is_refused_in_a_sentence(folder, options, error):
    unreadable(folder, 50)
    told = run("check", *options, code=2).stderr
    assert error in told and len(told.strip().splitlines()) == 1


def test_a_model_is_shown_reported_and_exported(folder):
    told = run(
        "fit", "data.csv", "schema.toml", "--out", "model.json", "--report", "r.html", "--quiet"
    ).stdout
    assert "the report in r.html" in told
    assert run("show", "model.json").stdout.strip() == told.split("\n\nThe model is in")[0].strip()
    stated = json.loads(run("show", "model.json", "--json").stdout)
    assert stated["format"] == "dpglm statement" and stated["version"] == 2
    assert 0 < stated["measures"]["mu"] < 1
    assert sum(line["share"] for line in stated["releases"]) == pytest.approx(1)
    run("report", "model.json", "--out", "again.html")
    page = (folder / "r.html").read_text()
    assert page == (folder / "again.html").read_text() and "<script" not in page and "http" not in page
    for part in (
        stated["digest"],
        "What is not covered",
        "job=nurse",
        "gradient",
        "Shares of the privacy cost",
    ):
        assert part in page
    run("export", "model.json", "--json", "s.json", "--registry", "entry.yaml")
    assert json.loads((folder / "s.json").read_text()) == stated
    entry = yaml.safe_load((folder / "entry.yaml").read_text())
    loss = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert loss["epsilon"] == stated["privacy"]["epsilon"] and loss["delta"] == stated["privacy"]["delta"]
    assert entry["deployment"]["basic"]["data_curators"][0]["data_curator_name"] == "TODO"
    assert "name an output" in run("export", "model.json", code=2).stderr
    assert "no folder 'no'" in run("export", "model.json", "--json", "no/s.json", code=2).stderr


def test_a_report_shows_scores_an_audit_and_an_account_and_refuses_files_that_were_edited(folder):
    account = f"sqlite:///{folder / 'budget.db'}#homes"
    Ledger(account.split("#")[0]).create("homes", epsilon=3.0, delta=1e-6)
    run("fit", "data.csv", "schema.toml", "--out", "model.json", "--ledger", account, "--quiet")
    scored = run("evaluate", "model.json", "data.csv", "--epsilon", 2, "--ledger", account, "--json").stdout
    (folder / "scores.json").write_text(scored)
    finding = Finding("a solver", "model", "replace-one", 1.0, 1e-6, 0.4, 0.9, 100, False, "a test")
    (folder / "audit.json").write_text(Findings((finding,), 0.99).to_json())
    beside = "--evaluation", "scores.json", "--audit", "audit.json", "--ledger", account
    run("report", "model.json", "--out", "whole.html", *beside)
    page = (folder / "whole.html").read_text()
    assert "one more fit at" in page and "No claim was refuted" in page and "Scores on 2,000" in page
    run("export", "model.json", "--card", "card.md", "--json", "s.json", *beside)
    assert "accuracy" in (folder / "card.md").read_text()
    assert json.loads((folder / "s.json").read_text())["ledger"]["account"] == "homes"
    (folder / "scores.json").write_text(scored.replace('"level": 0.95', '"level": 0.5'))
    assert "edited" in run("report", "model.json", *beside, code=2).stderr
    (folder / "scores.json").write_text("{}")
    assert "scores.json: this is not an evaluation" in run("report", "model.json", *beside, code=2).stderr
    (folder / "scores.json").write_text("{")
    assert "scores.json: " in run("report", "model.json", *beside, code=2).stderr


@pytest.mark.parametrize("kind", ["LogisticRegression", "LinearSVC", "Ridge", "three"])
def test_exports_predict_what_the_model_predicts(folder, kind):
    raw = pd.read_csv("data.csv")
    target = '"target", low = 0, high = 1' if kind == "Ridge" else '"target", classes = ["owned", "rented"]'
    if kind == "three":
        raw.loc[raw.age > 75, "home"] = "shared"
        target = '"target", classes = ["owned", "rented", "shared"]'
    elif kind == "Ridge":
        raw["home"] = (raw.age > 50).astype(float)
    raw.to_csv("data.csv", index=False)
    (folder / "schema.toml").write_text(SCHEMA.splitlines()[1] + "\n" + "\n".join(
        [*SCHEMA.splitlines()[2:4], f"home = {{ type = {target} }}"]
    ))  # fmt: skip
    model = [] if kind == "three" else ["--model", kind]
    run("fit", "data.csv", "schema.toml", "--out", "m.json", "--epsilon", 4, *model)
    run("export", "m.json", "--onnx", "m.onnx", "--sklearn", "m.skops")
    fitted = model_from_json((folder / "m.json").read_text())
    rows = fitted.schema.encode(raw)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    session = onnxruntime.InferenceSession("m.onnx")
    found = session.run(None, {"X": rows.astype(np.float32 if kind == "LinearSVC" else float)})
    expected = fitted.predict(raw)
    assert "privacy" in session.get_modelmeta().custom_metadata_map
    plain = skops.io.load("m.skops")
    assert type(plain).__module__.startswith("sklearn")
    if kind == "Ridge":
        assert np.allclose(found[0].ravel(), expected, atol=1e-9)
        assert np.allclose(np.clip(plain.predict(rows), 0, 1), expected, atol=1e-12)
        assert expected.max() == 1.0  # the range cuts some
    else:
        assert (found[0] == expected).mean() == 1.0 and (plain.predict(rows) == expected).all()
    if kind == "LogisticRegression":
        assert np.allclose(found[1], fitted.predict_proba(raw), atol=1e-6)


@pytest.mark.filterwarnings("always:scikit-learn has no step")
@pytest.mark.parametrize("kind", ["LogisticRegression", "LinearSVC"])
def test_onnx_cuts_rows_to_the_norm_of_the_schema_and_scikit_learn_warns(folder, kind):
    (folder / "schema.toml").write_text(f"row_norm = 0.7\n{SCHEMA}")
    run("fit", "data.csv", "schema.toml", "--out", "m.json", "--epsilon", 4, "--model", kind)
    told = run("export", "m.json", "--onnx", "m.onnx", "--sklearn", "m.skops")
    fitted, raw = model_from_json((folder / "m.json").read_text()), pd.read_csv("data.csv")
    rows = fitted.schema_.encode(raw)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    assert "Warning: scikit-learn has no step that cuts rows to row_norm = 0.7" in told.stderr
    assert (np.linalg.norm(rows, axis=1) > 0.7).any()
    session = onnxruntime.InferenceSession("m.onnx")
    found = session.run(None, {"X": rows.astype(np.float32 if kind == "LinearSVC" else float)})
    assert (found[0] == fitted.predict(raw)).mean() > 0.999  # single precision may move one
    if kind == "LogisticRegression":
        assert np.allclose(found[1], fitted.predict_proba(raw), atol=1e-9)
        cut = fitted.schema_.bounds().clip(rows)
        assert np.allclose(skops.io.load("m.skops").predict_proba(cut), found[1], atol=1e-9)


@pytest.mark.filterwarnings("always:scikit-learn has no step")
@pytest.mark.parametrize("most", [2, 20])
@pytest.mark.parametrize("target", ["classes", "numbers"])
def test_a_model_that_learnt_its_schema_is_shown_reported_exported_and_used(folder, most, target):
    (folder / "learnt.toml").write_text(
        'row_norm = "learn"\n[columns]\nage = { type = "number", learn = true, widest = [0, 200] }\n'
        f'job = {{ type = "category", learn = true, most = {most} }}\n'
        + (
            'home = { type = "target", classes = ["owned", "rented"] }\n'
            if target == "classes"
            else 'home = { type = "target", learn = true, widest = [-9, 9] }\n'
        )
    )
    raw = pd.read_csv("data.csv")
    if target == "numbers":
        raw["home"] = (raw.age / 90).round(3)
        raw.to_csv("data.csv", index=False)
    run("fit", "data.csv", "learnt.toml", "--epsilon", 4, "--out", "m.json", "--report", "r.html")
    names = [
        row["name"] for row in json.loads(run("show", "m.json", "--json").stdout)["fits"][0]["coefficients"]
    ]
    assert names == ["age", "job=clerk", "job=nurse", "job (other)", "intercept"]
    assert "job=nurse" in run("show", "m.json").stdout and "(unused" not in run("show", "m.json").stdout
    run("report", "m.json", "--out", "again.html")
    assert (folder / "again.html").read_text() == (folder / "r.html").read_text()
    files = ["--json", "s.json", "--onnx", "m.onnx", "--sklearn", "m.skops", "--registry", "e.yaml"]
    run("export", "m.json", *files, "--card", "c.md")
    predicted = run("predict", "m.json", "data.csv").stdout.splitlines()[1:]
    fitted = model_from_json((folder / "m.json").read_text())
    assert predicted == [str(one) for one in fitted.predict(raw)]
    rows = fitted.schema_.encode(raw)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    found = onnxruntime.InferenceSession("m.onnx").run(None, {"X": rows})[0].ravel()
    plain = skops.io.load("m.skops").predict(rows)
    if target == "classes":
        assert (found == fitted.predict(raw)).all() and (plain == found).all()
    else:
        assert np.allclose(found, fitted.predict(raw), atol=1e-9)
    (score,) = json.loads(run("evaluate", "m.json", "data.csv", "--epsilon", 2, "--json").stdout)["scores"]
    assert score["value"] <= score["high"]


def test_intervals_survive_in_a_file(folder):
    (folder / "s.toml").write_text(
        '[columns]\nage = { type = "number", low = 18, high = 90 }\n'
        'rent = { type = "target", low = 0, high = 9 }\n'
    )
    rng = np.random.default_rng(0)
    age = rng.uniform(18, 90, 20_000)
    pd.DataFrame({"age": age, "rent": age / 12 + rng.normal(0, 0.3, 20_000)}).to_csv("rent.csv", index=False)
    told = run(
        "fit", "rent.csv", "s.toml", "--out", "m.json", "--epsilon", 2, "--report", "r.html", "--intervals"
    ).stdout
    assert "std err" in told and run("show", "m.json").stdout.strip() in told
    again = model_from_json((folder / "m.json").read_text())
    assert again.summary().determined and model_to_json(again) == (folder / "m.json").read_text().strip()
    (fit,) = json.loads(run("show", "m.json", "--json").stdout)["fits"]
    assert fit["coefficients"][0]["low"] < 1 / 12 < fit["coefficients"][0]["high"]
    assert "95 % intervals account for sampling and noise" in (folder / "r.html").read_text()


def test_the_shell_completes_commands():
    words = {"_DPGLM_COMPLETE": "complete_bash", "COMP_WORDS": "dpglm ev", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "dpglm"]
    code = "import sys; from dpglm.cli import app; sys.argv = ['dpglm']; app(prog_name='dpglm')"
    told = subprocess.run(
        [command[0], "-c", code], env=os.environ | words, capture_output=True, text=True, check=False
    )
    assert told.stdout.split() == ["evaluate"]


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


SPELLED = """
[columns]
admitted = { type = "date", low = 2020-01-01, high = 2030-01-01 }
left = { type = "date", low = 2020-01-01, high = 2030-01-01, format = "%d.%m.%Y" }
cost = { type = "number", low = 0, high = 1000 }
eur = { type = "number", low = 0, high = 1000, decimal = ",", thousands = ".", strip = "€" }
"a=b" = { type = "number", low = 0, high = 1000, missing = 40 }
ward = { type = "category", levels = ["cardiology", "surgery"] }
job = { type = "category", learn = true, casefold = true, aliases = { rn = "nurse" } }
rent = { type = "number", learn = true, widest = [0, 100] }
note = { type = "text", buckets = 100 }
grade = { type = "ordinal", levels = ["low", "high"], missing = "indicator" }
ok = { type = "boolean" }
days = { type = "exposure", low = 1, high = 9 }
id = { type = "unit" }
x = { type = "drop" }
y = { type = "target", classes = ["yes", "no"] }
"""
TRIALS = [
    ("admitted=15.04.2026", 'null: no date of the format ISO 8601 (format = "%d.%m.%Y" would read it)'),
    ("admitted=03/04/2026", '(format = "%d/%m/%Y" or format = "%m/%d/%Y" would read it)'),
    ("admitted=15.04.2026 10:30", '(format = "%d.%m.%Y %H:%M" would read it)'),
    ("admitted=soon", "null: no date of the format ISO 8601"),
    ("admitted=", "null: missing"),
    ("left=15.4.2026", "left=15.4.2026: the date 2026-04-15"),
    ("left=15.4.2036", "the date 2036-04-15, cut to 2030-01-01"),
    ("left=2026-04-15", 'null: no date of the format %d.%m.%Y (format = "ISO8601" would read it)'),
    ("cost=1,123.40", 'null: no number (thousands = "," would read it)'),
    ("cost=12,5", 'null: no number (decimal = "," would read it)'),
    ("cost=1.123,40 €", '(decimal = ",", thousands = ".", strip = "€" would read it)'),
    ("cost=12 EUR", '(strip = ["EUR"] would read it)'),
    ("cost=five", "null: no number"),
    ("cost=5000", "the number 5000, cut to 1000"),
    ("eur=1.123,40 €", "the number 1123.4, cut to 1000"),
    ("a=b=7", "a=b=7: the number 7"),
    ("a=b=NA", "missing, which counts as 40"),
    ("ward=surgery", "the level 'surgery'"),
    ("ward=Cardiology", "an unknown level: the feature ward (other) (casefold = true would read it)"),
    ("ward=Cardio ", '(aliases = { Cardio = "cardiology" } would read it)'),
    ("ward=", "missing, which counts as an unknown level"),
    ("job= RN", "the level 'nurse', if it is learnt"),
    ("job=NA", "missing, which counts as an unknown level"),
    ("rent=200", "the number 200, cut to 100"),
    ("note=back pain", "the features note #"),
    ("note= ", "a row of zeros"),
    ("grade=mid", "an unknown level, which counts as the middle"),
    ("grade=", "missing, which counts as the feature grade (missing)"),
    ("ok=Yes", "the boolean True"),
    ("ok=ja", "null: no boolean"),
    ("days=0", "null: an exposure of 0 or less"),
    ("id=7", "the id '7'"),
    ("id=", "null: missing"),
    ("x=7", "not read: the column is dropped"),
    ("y=no", "the class of the target 'no'"),
    ("y=Yes", "null: no class of the target (casefold = true would read it)"),
]


def test_a_schema_is_tried_on_cells_without_records(folder):
    (folder / "s.toml").write_text("\ufeff" + SPELLED, encoding="utf-8")  # as an editor of Windows writes it
    for cell, told in TRIALS:
        is_null = told.startswith("null") or "admitted" in cell or cell.startswith("cost=1")
        said = run("schema", "try", "s.toml", "--cell", cell, code=int(is_null)).stdout.strip()
        assert told in said and ("the record would be null" in said) == is_null and said.count("\n") == 0, (
            cell
        )
    cells = [part for cell, _ in TRIALS for part in ("--cell", cell)]
    found = json.loads(run("schema", "try", "s.toml", *cells, "--json", code=1).stdout)
    assert len(found) == len(TRIALS) and set(found[0]) == {"column", "cell", "meaning", "null", "remedy"}
    assert "needs a column of the schema" in run("schema", "try", "s.toml", "--cell", "z=1", code=2).stderr


def test_a_raw_file_is_read_as_its_schema_declares_it(folder):
    """Dates 15.04.2026, amounts 1,123.40, several rows a person, and typos in levels."""
    rng = np.random.default_rng(0)
    n = 6_000
    wards = rng.choice(["cardiology", "Cardiology", "Cardio ", "SURGERY"], n)
    cost, day = (
        rng.uniform(10, 9_000, n),
        pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D"),
    )
    again = (cost / 4_500 + (wards == "SURGERY") + rng.normal(0, 0.3, n)) > 1.2
    raw = pd.DataFrame(
        {"patient": rng.integers(0, 3_000, n), "admitted": day.strftime("%d.%m.%Y"), "ward": wards,
         "cost": [f"{one:,.2f}" for one in cost], "again": np.where(again, "Yes", "no")}
    )  # fmt: skip
    raw = pd.concat([raw.drop_duplicates("patient"), raw]).sort_values("patient", kind="stable")
    raw.to_csv("raw.csv", index=False)
    clean = raw.assign(
        admitted=pd.to_datetime(raw.admitted, format="%d.%m.%Y"), again=raw.again.str.lower(),
        cost=raw.cost.str.replace(",", "").astype(float),
        ward=raw.ward.str.strip().str.lower().replace("cardio", "cardiology"),
    )  # fmt: skip
    clean.to_parquet("clean.parquet", index=False)
    usual = """
[columns]
patient = { type = "unit", rows = 3 }
admitted = { type = "date", low = 2025-01-01, high = 2026-01-01 }
ward = { type = "category", levels = ["cardiology", "surgery"] }
cost = { type = "number", low = 0, high = 9000 }
again = { type = "target", classes = ["yes", "no"] }
"""
    spelled = usual.replace("2026-01-01 }", '2026-01-01, format = "%d.%m.%Y" }').replace(
        "9000 }", '9000, thousands = "," }'
    )
    spelled = spelled.replace(
        '"surgery"] }', '"surgery"], casefold = true, aliases = { cardio = "cardiology" } }'
    )
    spelled = spelled.replace('"no"] }', '"no"], casefold = true }')
    (folder / "usual.toml").write_text(usual)
    (folder / "spelled.toml").write_text(spelled)
    found = Schema.load("spelled.toml").encode(pd.read_csv("raw.csv", dtype=str))
    expected = Schema.load("usual.toml").encode(pd.read_parquet("clean.parquet"))
    np.testing.assert_array_equal(found, expected)
    run("fit", "raw.csv", "spelled.toml", "--epsilon", 4, "--out", "m.json", "--quiet")
    values = dict(re.findall(r"^(\S+) +(-?[\d.]+)", run("show", "m.json").stdout, re.M))
    right = np.array(run("predict", "m.json", "raw.csv").stdout.split()[1:]) == clean.again
    assert right.mean() > 0.8 and float(values["ward=surgery"]) > float(values["ward=cardiology"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["fit", "none.csv", "schema.toml", "--out", "m.json"], "there is no file 'none.csv'"),
        (["fit", "parts", "schema.toml", "--out", "m.json"], "'parts' is a folder: name one of its files"),
        (["fit", "*.csv", "schema.toml", "--out", "m.json"], "a file is named, not a pattern"),
        (["fit", "data.csv", "none.toml", "--out", "m.json"], "none.toml: No such file"),
        (["fit", "data.csv", "schema.toml", "--out", "no/m.json"], "there is no folder 'no'"),
        (["fit", "data.csv", "schema.toml", "--out", "m.json", "--model", "Ridge"], "Ridge needs a range"),
        (["fit", "data.csv", "schema.toml", "--out", "m.json", "--model", "Tree"], "--model must be one of"),
        (["fit", "data.csv", "schema.toml", "--out", "m.json", "--epsilon", "-1"], "epsilon"),
        (["fit", "other.csv", "schema.toml", "--out", "m.json"], "the table has no column 'age', 'job'"),
        (["fit", "extra.csv", "schema.toml", "--out", "m.json"], "does not declare column 'extra'"),
        (["predict", "schema.toml", "data.csv"], "this is no model of dpglm"),
        (["predict", "data.parquet", "data.csv"], "is not UTF-8 text"),
        (
            ["plan", "utf16.toml", "--rows", "9"],
            "if it is UTF-16, as some shells write",
        ),
        (["schema", "draft", "data.jsonl"], "JSON lines declare no columns"),
    ],
)
def test_errors_are_one_sentence_that_names_the_fact_and_no_value(arguments, error, folder):
    (folder / "parts").mkdir()
    (folder / "other.csv").write_text(f"{MARK},home\n{MARK},owned\n")
    (folder / "extra.csv").write_text(f"age,job,home,extra\n1,clerk,owned,{MARK}\n")
    (folder / "data.jsonl").write_text(f'{{"age": "{MARK}"}}\n')
    (folder / "utf16.toml").write_text((folder / "schema.toml").read_text(), encoding="utf-16")
    result = run(*arguments, code=2)
    assert error in result.stderr and MARK not in result.output
    assert result.stderr.count("Error: ") == 1 and "Traceback" not in result.output


def test_random_options_schemas_models_and_tables_neither_crash_nor_cost_nor_are_null_in_silence():
    assert sum(fuzzed_commands.run(150).values()) == 150


PAGES = [
    "README.md",
    "docs/audit.md",
    "docs/commands.md",
    "docs/evaluation.md",
    "docs/ledger.md",
    "docs/schema.md",
]


def test_these_are_all_pages_with_commands():
    found = [
        path for path in (ROOT / "docs").rglob("*.md") if COMMAND.search(path.read_text(encoding="utf-8"))
    ]
    pages = {str(path.relative_to(ROOT)) for path in found}
    assert sorted(PAGES) == ["README.md", *sorted(pages - {"docs/start.md"})]  # which tests/test_site.py runs


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page, tmp_path, monkeypatch):
    """In their order, in a temporary folder, with what the page presupposes; audits with few runs."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    if page == "README.md":
        adult = write_adult(tmp_path)
        adult.schema.rename("schema.toml")
        for file, name in ((adult.train, "data.csv"), (adult.test, "other.csv")):
            pd.read_csv(file, nrows=4_000, dtype=str, keep_default_na=False).to_csv(name, index=False)
    if page == "docs/schema.md":
        namespace = {}
        exec(text.split("```python\n")[1].split("```")[0], namespace)
        namespace["table"].to_csv("data.csv", index=False)
        (tmp_path / "schema.toml").write_text(namespace["schema"].to_toml())
    (tmp_path / "mymodels.py").write_text(
        "from dpglm import LogisticRegression\nmodel = LogisticRegression(classes=[-1, 1])\n"
    )
    head = ""
    for command in COMMAND.findall(text):
        words = shlex.split(re.sub(r"\s+# .*|\s+#$", "", command.replace("HASH", head)))[1:]
        if words == ["audit"]:
            words += ["Laplace"]  # all of them are audited in tests/audit
        if words[0] == "audit":
            words += ["--runs", "4", "--quiet"]
        told = run(*words).stdout
        if words[:2] == ["ledger", "show"]:
            head = told.split("head: ")[1].split()[0]
    if page == "docs/commands.md":
        for name in (
            "report.html",
            "again.html",
            "model.onnx",
            "model.skops",
            "statement.json",
            "entry.yaml",
        ):
            assert (tmp_path / name).stat().st_size > 500, name
    if "--out predictions.csv" in text:
        assert (tmp_path / "predictions.csv").stat().st_size > 20_000


def test_the_schema_of_adult_has_fewer_than_twenty_lines_and_reads_its_records():
    text = (ROOT / "src" / "dpglm" / "datasets" / "adult.toml").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 20
    schema = Schema.from_toml(text)
    line = "39,?,77516,Bachelors,13,Never-married,Sales,Husband,White,Male,2174,0,40,Cuba,<=50K"
    raw = dict(zip(schema.columns, [[cell] for cell in line.split(",")], strict=True))
    names = np.array(schema.features)[schema.encode(raw).indices]
    assert {"workclass (other)", "education=Bachelors", "native_country (other)", "age"} <= set(names)
    assert schema.read_target(raw).tolist() == ["<=50K"]


def test_the_models_that_the_commands_name_are_those_that_can_be_stored():
    assert tuple(ESTIMATORS) == commands.MODELS


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "dpglm", "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "predict" in told.stdout


def test_an_unexpected_error_is_not_quoted(folder, monkeypatch):
    def broken(*_):
        raise RuntimeError(f"secret {MARK}")

    monkeypatch.setattr(commands, "source_of_file", broken)
    result = run("fit", "data.csv", "schema.toml", "--out", "m.json", code=3)
    assert "unexpected RuntimeError" in result.stderr and MARK not in result.output
