"""The experiments run; what they find is printed by them, not asserted here."""

import importlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from dpglm.data import as_block

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"


RUNS = [
    ("adult.py", ["--runs", "1", "--quick"], "| auto | 1 |"),
    ("unequal_columns.py", ["--runs", "1", "--quick"], "| 10000 | 20 | 1 | logistic |"),
    ("audit_false_alarms.py", ["--audits", "14", "--runs", "20"], "14 audits: "),
    ("claims.py", ["--quick"], "epsilon 1 explains"),
    ("counts.py", ["--quick"], "| few records | 1 |"),
    ("comparison.py", ["--quick", "--fits", "1", "--out", "."], "| dpglm | "),
    ("cd_balanced.py", ["--quick", "--out", "."], "DP-CD, smoothness clip"),
    ("defaults.py", ["--quick", "--out", "."], "| small linear | drawn | 1,600 x 5 |"),
    ("evaluation_coverage.py", ["--quick"], "| 1,000 | replace-one | 2 | accuracy |"),
    ("groups.py", ["--quick", "--out", "."], "| solver | epsilon | long rows | s |"),
    ("gcd_defaults.py", ["--seeds", "1"], "| logistic |"),
    ("gcd_share.py", ["--quick"], "|"),
    ("fw_accuracy.py", ["--quick", "--out", "."], "| tiny | Frank-Wolfe, radius 20 | 1 |"),
    ("fw_gap.py", ["--quick", "--out", "."], "| 50 |"),
    ("fw_scaling.py", ["--quick", "--out", "."], "| sharpness | microseconds a step |"),
    ("fw_steps.py", ["--quick"], "| normal | 300 x 20 | 1 | 5 |"),
    ("fw_speed.py", ["--quick", "--out", "."], "| rcv1 | 1,000 | 0.1 |"),
    ("gcd_paper.py", ["--quick", "--out", "."], "| square_small | 2 | 0.75 | DP-GCD |"),
    (
        "inference_coverage.py",
        ["--quick", "--out", ".", "--data", "."],
        "| linear mixed 1,000 x 10, epsilon 1 | 4 |",
    ),
    ("inference_length.py", ["--quick", "--out", "."], "| logistic | 5 | 0.5 |"),
    ("learnt_facts.py", ["--quick", "--runs", "1"], "Levels of 1 columns together"),
    ("multinomial.py", ["--quick", "--out", "."], "| small | 240 x 64 | 10 |"),
    ("private_size.py", ["--quick", "--runs", "1"], "| 1,000 | "),
    ("newton_prediction.py", ["--quick", "--out", "."], "| small linear | 1,600 x 5 |"),
    ("objective_scale.py", ["--quick", "--out", "."], "| 1e+09 | 8 | planned |"),
    ("persons.py", ["--quick"], "| 2 visits | 300 | 600 | 1 |"),
    ("scd_defaults.py", ["--quick", "--runs", "1", "--data", "."], "| Adult, hinge | 1 | 0.1 | - |"),
    ("scd_noise.py", ["--quick"], "| 1 | 1,000 | 100 | 200 |"),
    (
        "scd_paper.py",
        ["--quick", "--data", ".", "--out", ".", "--problems", "ridge_small,hinge_small"],
        "| ridge_small, MSE | 1 |",
    ),
    ("search.py", ["--quick", "--out", "."], "| small linear | 1,600 x 5 | 1 |"),
    ("search_prices.py", ["--quick"], "Below the truth: 0 of 3."),
    ("plateaus.py", ["--quick"], "| labels | equal | objective perturbation |"),
    ("structured_recovery.py", ["--quick", "--out", "."], "| groups | objective perturbation | 500 |"),
    ("structured_width.py", ["--quick"], "| any feature | 2.6 |"),
]
"""Each script, arguments that make it quick, and a line that it prints."""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs an experiment as its command line would, but in this process, which has compiled most of it."""
    known, path = set(sys.modules), list(sys.path)

    def run(script, arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        monkeypatch.setattr(sys, "path", [str(EXPERIMENTS), *path])
        try:
            runpy.run_path(str(EXPERIMENTS / script), run_name="__main__")
        except SystemExit as end:
            return end.code or 0
        return 0

    yield run
    for name in set(sys.modules) - known:
        if Path(getattr(sys.modules[name], "__file__", None) or ".").parent == EXPERIMENTS:
            del sys.modules[name]


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize(("script", "arguments", "printed"), RUNS)
def test_an_experiment_runs_and_prints_its_table(script, arguments, printed, run, capsys):
    assert run(script, arguments) == 0
    assert printed in capsys.readouterr().out


def test_every_experiment_is_run():
    shared = {f"gcd_{name}.py" for name in ("problems", "competitors", "kernels", "search")}
    shared |= {f"scd_{name}.py" for name in ("problems", "published", "search")}
    shared |= {"fw_tables.py", "inference_fits.py", "inference_tables.py", "outputs.py"}
    shared |= {"adassp.py", "comparison_worker.py", "defaults_report.py", "prediction_tables.py"}
    shared |= {"table_runs.py", "group_tables.py"}
    assert {path.name for path in EXPERIMENTS.glob("*.py")} - shared == {script for script, *_ in RUNS}


def test_drawn_tables_have_their_shape_and_depend_on_the_seed_alone(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    tables = importlib.import_module("fw_tables")
    for shape in tables.SHAPES.values():
        X, y = tables.make(shape, seed=3, rows=300)
        assert X.shape == (300, shape.p) and X.dtype == np.float32 and X.indices.dtype == np.int32
        assert X.has_canonical_format and X.indices.max() < shape.p
        assert abs(X.nnz / 300 / shape.entries_a_row - 1) < 0.15
        norms = as_block(X).row_norms
        assert (norms <= 1).all() and np.allclose(norms, 1)
        assert abs((y > 0).mean() - shape.positive) < 0.01
        held = np.bincount(X.indices, minlength=shape.p)[shape.dense :].max() / 300
        assert abs(held - shape.top_share) < 0.1
        monkeypatch.setattr(tables, "CHUNK", 7)
        again, labels = tables.make(shape, seed=3, rows=300)
        assert np.array_equal(X.indices, again.indices) and np.array_equal(X.data, again.data)
        assert np.array_equal(y, labels)
        assert not np.array_equal(X.indices, tables.make(shape, seed=4, rows=300)[0].indices)
