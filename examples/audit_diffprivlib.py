"""Audit another library: diffprivlib's LogisticRegression, which promises pure epsilon-differential privacy.

diffprivlib 0.6 does not work with current scikit-learn, so the script makes an environment with the versions
that it needs, lets `diffprivlib_worker.py` do the fits there, and audits the coefficients that come back.

    python examples/audit_diffprivlib.py

It takes two to five minutes and needs a package registry for the first run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np

from dpglm.audit import Claim, audit_outputs

HERE = Path(__file__).resolve().parent
NEEDS = ("diffprivlib==0.6.6", "scikit-learn==1.7.*")

# Four records of norm at most 100. In the second table the first of them is all zero.
LABELS = np.array([1, 1, 0, 0])
FIRST = np.array([[100.0], [0.0], [0.0], [0.0]])
SECOND = np.zeros((4, 1))
OPTIONS = {"epsilon": 1.0, "data_norm": 100.0}


def interpreter(folder: Path) -> Path:
    """The Python of an environment with diffprivlib, made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"setting up {', '.join(NEEDS)} in {folder}", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *NEEDS], check=True)
    return python


def outputs(python: Path, X: np.ndarray, runs: int) -> np.ndarray:
    """Coefficient, intercept and prediction for the record in question, for every fit to a table."""
    with tempfile.TemporaryDirectory() as folder:
        table, models = Path(folder) / "table.npz", Path(folder) / "models.npz"
        np.savez(table, X=X, y=LABELS)
        worker = HERE / "diffprivlib_worker.py"
        subprocess.run([python, worker, table, models, str(runs), json.dumps(OPTIONS)], check=True)
        fitted = np.load(models)
        w, b = fitted["coef"], fitted["intercept"]
    return np.column_stack([w @ FIRST[0] + b, w, b])


def main() -> None:
    """Fit on both tables and print the finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000, help="fits to each table")
    parser.add_argument("--folder", type=Path, default=Path(".venv-diffprivlib"), help="where to install")
    parser.add_argument("--python", type=Path, help="an interpreter that has diffprivlib already")
    arguments = parser.parse_args()
    python = arguments.python or interpreter(arguments.folder.resolve())
    print(f"fitting {arguments.runs} models to each of two tables", flush=True)
    first, second = (outputs(python, X, arguments.runs) for X in (FIRST, SECOND))
    report = audit_outputs(
        first, second, Claim(epsilon=OPTIONS["epsilon"], delta=0.0),
        subject="diffprivlib LogisticRegression, data_norm 100", seen="model", neighbours="replace-one",
    )  # fmt: skip
    print(report)
    print(f"told apart by: {report.findings[0].how} (output 0 is the prediction for the record in question)")
    if report.violated:
        print("The claim is refuted at 99 % confidence.")
    sys.exit(report.violated)


if __name__ == "__main__":
    main()
