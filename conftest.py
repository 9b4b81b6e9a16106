"""Tests may run in several processes at once (pytest -n), which stay out of each other's way."""

import os
from pathlib import Path

from hypothesis import settings

# How long one example takes depends on what else is running.
settings.register_profile("dpglm", deadline=None)
settings.load_profile("dpglm")

worker = os.environ.get("PYTEST_XDIST_WORKER")
if worker:
    # Before NumPy and numba are imported, here and in the scripts that tests start.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Processes that compile one function for different types at once may write both to the same file.
    compiled = os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / ".pytest_cache" / "numba"
    os.environ["NUMBA_CACHE_DIR"] = str(Path(compiled) / worker)
