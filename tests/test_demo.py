import csv
import gzip
from itertools import islice
from pathlib import Path

from dpglm import demo
from dpglm.datasets import write_adult

RECORDS = 3_000


def write_fewer(folder):
    """The files of the demo with the first of their records: to read all of them takes most of its time."""
    files = write_adult(folder)
    for path in (files.train, files.test):
        with gzip.open(path, "rt", encoding="utf-8") as whole:
            lines = list(islice(whole, 1 + RECORDS))
        with gzip.open(path, "wt", encoding="utf-8") as part:
            part.writelines(lines)
    return files


def test_the_demo_goes_the_whole_way(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "EPSILONS", (0.1, 1.0))
    monkeypatch.setattr(demo, "write_adult", write_fewer)
    demo.main(["--runs", "1", "--out", str(tmp_path / "demo")])
    with gzip.open(tmp_path / "demo" / "adult_test.csv.gz", "rt", encoding="utf-8") as test:
        poor = sum(person["income"] == "<=50K" for person in csv.DictReader(test)) / RECORDS
    shown = capsys.readouterr().out
    for part in (
        "epsilon = 1, delta", "capital_gain", "passes", "account census", "std err", "95 % interval",
        f"always the larger class  {poor:.2%}", "marital_status=Married-civ-spouse", "evaluate",
    ):  # fmt: skip
        assert part in shown, part
    assert (tmp_path / "demo" / "privacy_accuracy.png").stat().st_size > 10_000
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "What is not covered" in page and "capital_gain" in page


def test_the_stored_figures_of_others_are_those_of_the_experiments():
    table = (Path(__file__).resolve().parents[1] / "experiments" / "README.md").read_text(encoding="utf-8")
    for name, figures in demo.PUBLISHED.items():
        rows = [line.replace("*", "") for line in table.splitlines() if line.startswith(f"| {name} |")]
        (beside,) = (
            row.split("|") for row in rows if row.count("|") == 13 and row.split("|")[2].strip() == "1"
        )
        ours, boosted, adassp = (beside[k].split()[0] for k in (3, 12, 11))
        assert tuple(map(float, (ours, boosted, adassp))) == figures[:3], name
        (plain,) = {
            row.split("|")[4].strip() for row in rows if row.split("|")[2].strip() in ("tuning", "test")
        }
        assert float(plain) == figures[3], name


def test_a_guess_rises_from_a_coin_toss_with_epsilon():
    rights = [demo.right_guesses(epsilon, 32_561) for epsilon in (0.01, 0.1, 1.0, 10.0)]
    assert rights == sorted(rights) and 0.5 < rights[0] < 0.501 and 0.535 < rights[2] < 0.54
