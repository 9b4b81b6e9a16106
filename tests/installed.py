"""Try an installed dpglm, as `make dist` does in a clean environment: `python -I installed.py SOURCES`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import metadata, resources
from pathlib import Path

import numpy as np

import dpglm
from dpglm import Bounds, LogisticRegression
from dpglm.datasets import load_adult


def main(sources: Path) -> None:
    """Data files, a fit, and the command are there, and none of it comes from the sources."""
    package = Path(str(resources.files("dpglm")))
    assert not package.is_relative_to(sources.parents[1]) or "site-packages" in package.parts, package
    assert metadata.version("dpglm") == dpglm.__version__

    files = {path.relative_to(sources) for path in sources.rglob("*") if path.is_file()}
    files = {path for path in files if "__pycache__" not in path.parts}
    missing = sorted(str(path) for path in files if not (package / path).is_file())
    assert not missing, missing
    assert any(path.suffix == ".npz" for path in files) and Path("py.typed") in files

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2_000, 3))
    model = LogisticRegression(epsilon=1.0, classes=[0, 1], bounds=Bounds(feature=1.0))
    model.fit(X, (X[:, 0] > 0).astype(int))
    assert model.privacy_.epsilon <= 1.0 and model.coef_[0, 0] > 0
    assert load_adult().X.shape == (32_561, 123)

    with tempfile.TemporaryDirectory() as folder:
        command = str(Path(sys.executable).with_name("dpglm"))
        told = subprocess.run([command, "--help"], check=True, capture_output=True, text=True, cwd=folder)
        assert "fit" in told.stdout and "audit" in told.stdout
        subprocess.run([command, "example", "adult"], check=True, capture_output=True, cwd=folder)
        assert (Path(folder) / "adult" / "adult.toml").is_file()
    print(f"dpglm {dpglm.__version__} from {package}: {len(files)} files, a fit and the command work")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
