"""The experiments run; what they find is printed by them, not asserted here."""

import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"


@pytest.mark.parametrize(
    ("script", "arguments", "printed"),
    [
        ("adult.py", ["--runs", "1"], "| auto | 1 |"),
        ("unequal_columns.py", ["--runs", "1", "--quick"], "| 10000 | 20 | 1 | logistic |"),
        ("audit_false_alarms.py", ["--audits", "14", "--runs", "20"], "14 audits: "),
        ("cd_balanced.py", ["--quick", "--out", "."], "DP-CD, smoothness clip"),
        ("gcd_defaults.py", ["--seeds", "1"], "| logistic |"),
        ("gcd_share.py", ["--quick"], "|"),
        ("gcd_paper.py", ["--quick", "--out", "."], "| square_small | 2 | 0.75 | DP-GCD |"),
    ],
)
def test_an_experiment_runs_and_prints_its_table(script, arguments, printed, tmp_path):
    command = [sys.executable, str(EXPERIMENTS / script), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


def test_every_experiment_is_run():
    shared = {f"gcd_{name}.py" for name in ("problems", "competitors", "kernels", "search")}
    assert {path.name for path in EXPERIMENTS.glob("*.py")} - shared == {
        "adult.py",
        "audit_false_alarms.py",
        "cd_balanced.py",
        "gcd_defaults.py",
        "gcd_paper.py",
        "gcd_share.py",
        "unequal_columns.py",
    }
