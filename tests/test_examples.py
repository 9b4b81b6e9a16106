"""The examples run: an audit of stand-ins for diffprivlib that keep and break its promise, and intervals."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

# Compiled code is shared with the tests.
CACHE = {name: value for name, value in os.environ.items() if name == "NUMBA_CACHE_DIR"}

STAND_IN = """
import numpy as np


class LogisticRegression:
    def __init__(self, epsilon, data_norm):
        self.scale = {factor} * data_norm / epsilon

    rng = None

    def fit(self, X, y):
        rng = LogisticRegression.rng = LogisticRegression.rng or np.random.default_rng(int(X[0, 0]))
        self.coef_ = X.sum(axis=0, keepdims=True) + rng.laplace(scale=self.scale, size=(1, X.shape[1]))
        self.intercept_ = np.zeros(1)
        return self
"""


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (0.25, 1)])
def test_the_audit_of_another_library_tells_a_kept_promise_from_a_broken_one(factor, status, tmp_path):
    package = tmp_path / "diffprivlib"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "models.py").write_text(STAND_IN.format(factor=factor))
    command = [sys.executable, str(EXAMPLES / "audit_diffprivlib.py")]
    done = subprocess.run(
        [*command, "--runs", "1500", "--python", sys.executable],
        env=CACHE | {"PYTHONPATH": f"{tmp_path}:{EXAMPLES.parent / 'src'}", "PATH": ""},
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert ("VIOLATED" in done.stdout) is bool(status)


def test_the_example_of_intervals_finds_what_matters_for_income(tmp_path):
    command = [sys.executable, str(EXAMPLES / "adult_intervals.py"), "--epsilon", "4", "--plot", "forest.png"]
    places = {"PYTHONPATH": str(EXAMPLES.parent / "src"), "PATH": "", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(
        command, env=CACHE | places, cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "determined : yes" in done.stdout and "epsilon = 4" in done.stdout
    private, beside = done.stdout.split("Beside the fit")
    rows = {line[:17].strip(): line[17:].split() for line in beside.splitlines() if line[:1].isalpha()}
    apart = np.array([float(rows[name][-1]) for name in ("married", "capital gain", "education (steps)")])
    assert np.abs(apart).max() < 6  # standard errors
    assert "married" in private and "<0.001" in private
    assert (tmp_path / "forest.png").read_bytes().startswith(b"\x89PNG")
