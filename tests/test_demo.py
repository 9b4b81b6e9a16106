import csv
import gzip
from itertools import islice

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
