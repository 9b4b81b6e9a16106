"""Tests may run in several processes at once (pytest -n), which stay out of each other's way."""

import os
from pathlib import Path

from hypothesis import settings

# How long one example takes depends on what else is running; the examples are the same in every run.
settings.register_profile("dpglm", deadline=None, derandomize=True)
settings.load_profile("dpglm")


def pytest_configure(config):
    """Do not turn warnings about privacy into errors: fits with a seed warn by design.

    Here and not in pyproject.toml, which would import dpglm before the settings below.
    """
    config.addinivalue_line("filterwarnings", "ignore::dpglm.errors.PrivacyWarning")


worker = os.environ.get("PYTEST_XDIST_WORKER")
if worker:
    # Before NumPy and numba are imported, here and in the scripts that tests start: they share compiled code.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent / ".pytest_cache" / "numba"))
