"""The experiments run; what they find is printed by them, not asserted here."""

import importlib
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from dpglm.data import as_block
from dpglm.mechanisms import Randomness

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
    ("cd_ablation.py", ["--quick", "--loss", "LASSO", "--out", "."], "| LASSO | shuffled passes |"),
    ("cd_dimension.py", ["--quick", "--labels", "labels before", "--out", "."], "| labels before | 2 |"),
    ("gcd_draws.py", ["--quick"], "| log1, draw 0 |"),
    ("gcd_steps.py", ["--quick"], "| squared, 200 x 5 |"),
    ("gcd_defaults.py", ["--seeds", "1"], "| logistic |"),
    ("gcd_share.py", ["--quick"], "|"),
    ("fw_accuracy.py", ["--quick", "--out", "."], "| tiny | Frank-Wolfe, radius 20 | 1 |"),
    ("fw_accuracy.py", ["--quick", "--published", "--out", "."], "| tiny | signs paid | 0.1 |"),
    ("fw_gap.py", ["--quick", "--out", "."], "| 50 |"),
    ("fw_rates.py", ["--quick"], "| *slope in n* |"),
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
    ("penalty_pictures.py", ["--quick", "--figures", "."], "| branches of trees |"),
    ("persons.py", ["--quick"], "| 2 visits | 300 | 600 | 1 |"),
    ("scd_defaults.py", ["--quick", "--runs", "1", "--data", "."], "| Adult, hinge | 1 | 0.1 | - |"),
    ("scd_noise.py", ["--quick"], "| 1 | 1,000 | 100 | 200 |"),
    (
        "scd_paper.py",
        ["--quick", "--data", ".", "--out", ".", "--problems", "ridge_small,hinge_small"],
        "| ridge_small, MSE | 1 |",
    ),
    ("scd_primal.py", ["--quick", "--data", ".", "--out", "."], "| ridge_small, MSE | 1 |"),
    ("published_noise.py", ["--quick"], "| DP-CD, Theorem 1 | release | 1 | 10 | 20.4 |"),
    ("search.py", ["--quick", "--out", "."], "| small linear | 1,600 x 5 | 1 |"),
    ("search_prices.py", ["--quick"], "Below the truth: 0 of 3."),
    ("plateaus.py", ["--quick"], "| labels | equal | objective perturbation |"),
    ("structured_dual.py", ["--quick"], "| groups of 5 | 2 / (t + 2) |"),
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
    shared = {f"gcd_{name}.py" for name in ("problems", "competitors", "kernels", "search")} | {
        "cd_kernels.py"
    }
    shared |= {f"scd_{name}.py" for name in ("problems", "published", "search")}
    shared |= {"fw_heap.py", "fw_tables.py", "inference_fits.py", "inference_tables.py", "outputs.py"}
    shared |= {"adassp.py", "comparison_worker.py", "defaults_report.py", "prediction_tables.py"}
    shared |= {"table_runs.py", "group_tables.py", "prediction_scores.py"}
    assert {path.name for path in EXPERIMENTS.glob("*.py")} - shared == {script for script, *_ in RUNS}


def test_rows_of_the_papers_have_a_command_that_is_run_or_say_why_not():
    text = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    section = text.split("## Five papers, row by row")[1].split("\n### ")[0]
    rows = [
        line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| ") and "|---" not in line
    ]
    rows = [[cell.strip() for cell in row] for row in rows if row[0].strip() != "row"]
    quick = {script for script, arguments, _ in RUNS if "--quick" in arguments}
    assert len(rows) > 40
    for name, command, _, found in rows:
        scripts = re.findall(r"(\w+\.py)", command)
        assert (scripts and set(scripts) <= quick) or found.startswith("nothing to run"), name


def test_probabilities_are_calibrated_if_and_only_if_labels_are_drawn_from_them(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    scores = importlib.import_module("prediction_scores")
    rng = np.random.default_rng(0)
    z = rng.normal(size=100_000)
    happens, p = rng.random(100_000) < expit(z), expit(z)
    assert scores.reliability(happens, p) == pytest.approx((1, 0), abs=0.03)
    assert scores.calibration_error(happens, p) < 0.01
    assert scores.reliability(happens, expit(2 * z + 1)) == pytest.approx((0.5, -0.5), abs=0.03)
    assert scores.calibration_error(happens, 0 * p + 0.9) == pytest.approx(0.9 - happens.mean(), abs=0.001)


def test_regret_is_none_if_it_is_small_or_within_its_error(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    report = importlib.import_module("defaults_report")

    def cell(kind, auto, other, error, fits=2):
        rows = (
            report.Row("t", "test", 9, 9, 1.0, name, kind, score, error, "-", 0.0, fits)
            for name, score in (("auto", auto), ("newton", other), ("not private", 0.0))
        )
        return next(report.cells(list(rows), ("newton",), (), (kind,)))

    assert cell("accuracy", 0.5, 0.502, 0.0).is_small and not cell("accuracy", 0.5, 0.504, 0.0).is_small
    assert cell("log loss", 0.5, 0.495, 0.0).is_small and not cell("log loss", 0.5, 0.48, 0.0).is_small
    assert cell("log loss", 0.5, 0.6, 0.0).is_within_error and cell("log loss", 0.5, 0.6, 0.0).regret < 0
    assert cell("R²", 0.5, 0.54, 0.03).is_within_error and not cell("R²", 0.5, 0.55, 0.03).is_within_error
    assert not cell("R²", 0.5, 0.55, float("nan"), fits=1).is_within_error


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


def test_the_ablation_of_frank_wolfe_keeps_the_sums_that_the_standard_algorithm_computes(monkeypatch):
    for folder in (EXPERIMENTS, EXPERIMENTS.parent / "benchmarks"):
        monkeypatch.syspath_prepend(folder)
    tables = importlib.import_module("fw_tables")
    standard = importlib.import_module("standard_frank_wolfe").StandardFrankWolfe
    sparse = importlib.import_module("sparse_frank_wolfe").SparseFrankWolfe
    X, y = tables.make(tables.SHAPES["rcv1"], rows=200)
    choices = 2 * np.argsort(-X.sum(axis=0))[:30] + np.arange(30) % 2
    exact = standard(X, y, 50.0, 1.0)
    exact.replay(choices)
    errors = []
    for refresh in (0.0, np.inf):
        kept = sparse(X, y, 50.0, 1.0, refresh=refresh)
        kept.replay(choices[:3])
        before = np.array(kept._sums_of_features())
        kept.replay(choices[3:])
        assert np.allclose(kept.coefficients, exact.w, atol=1e-5)
        assert not np.allclose(before, kept._sums_of_features(), atol=1)
        errors.append(np.abs(kept._sums_of_features() - exact._sums_of_features()).max())
    assert errors[0] < 1e-3 < errors[1]  # without refreshes, as published, sums lag behind


def test_proposals_of_the_published_frank_wolfe_have_its_weights(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    proposals = importlib.import_module("fw_accuracy").proposals
    most = np.array([0.0, 1.0, 3.0, 2.0])
    drawn = proposals(most, np.random.default_rng(0))
    found = np.bincount([next(drawn)[0] for _ in range(20_000)], minlength=4) / 20_000
    assert np.allclose(found, np.exp(most) / np.exp(most).sum(), atol=0.015)


def test_primal_steps_move_by_the_stated_sensitivity_and_not_by_that_of_lemma_4(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    primal, problems = importlib.import_module("scd_primal"), importlib.import_module("scd_problems")
    task = problems.drawn("ridge_small", problems.Squared(), n=60, p=3)
    for n, coordinates in ((20, 1), (50, 4)):
        pair, clip = primal.neighbours(task, n, coordinates)
        moved, published = primal.largest_move(pair, clip), primal.LEMMA
        assert np.isclose(moved, primal.sensitivity(primal.PAIR, clip, coordinates, n), rtol=1e-9)
        assert moved > 1.5 * primal.sensitivity(published, clip, coordinates, n)


def test_the_heap_has_the_first_of_the_largest_and_counts_stale_tops_only(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    heap = importlib.import_module("fw_heap").Heap(np.array([5.0, 4.0, 3.0, 2.0]))
    nothing, rng, scores = Randomness(0), np.random.default_rng(0), np.arange(50.0)
    assert heap.draw(nothing) == 0 and heap.looks == 0
    heap.update(np.array([0, 1, 3]), np.array([0.0, 1.0, 2.5]))
    assert heap.looks == 0, "an update looks at no top"
    for _ in range(2):
        assert heap.draw(nothing) == 2 and heap.looks == 2
    heap.update(np.array([1]), np.array([9.0]))
    assert heap.draw(nothing) == 1 and heap.looks == 2
    heap = type(heap)(scores)
    for _ in range(1_000):
        index = np.append(rng.permutation(50)[:3], np.argmax(scores))  # the largest falls
        scores[index] = [*rng.integers(-5, 6, 3), -5.0]
        heap.update(index, scores[index])
        assert heap.draw(nothing) == np.argmax(scores)
