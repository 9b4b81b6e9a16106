"""Tests may run in several processes at once (pytest -n), which stay out of each other's way."""

import os
import sys
from pathlib import Path

# Before the other imports: all processes of a run, and the scripts that tests start, import the same files,
# which should be compiled to bytecode once, also where the environment keeps Python from writing it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from hypothesis import settings  # noqa: E402

# How long one example takes depends on what else is running; the examples are the same in every run.
settings.register_profile("dpglm", deadline=None, derandomize=True, max_examples=50)
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


def pytest_terminal_summary(terminalreporter):
    """Say it where nobody can overlook it if pages were not looked at."""
    missed = [
        skipped.longrepr[2]
        for skipped in terminalreporter.stats.get("skipped", [])
        if isinstance(skipped.longrepr, tuple) and "no page was opened in a browser" in skipped.longrepr[2]
    ]
    if missed:
        terminalreporter.section("PAGES WERE NOT TESTED", sep="!", yellow=True, bold=True)
        terminalreporter.line(f"{len(missed)} tests were skipped: {missed[0]}", yellow=True)
