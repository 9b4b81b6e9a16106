"""Tests may run in several processes at once (pytest -n), which stay out of each other's way."""

import fcntl
import os
from functools import wraps
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


def share_compiled_code(folder: Path) -> None:
    """Let all processes use one cache of compiled code, in turn.

    Without a lock, processes that save one function for different types at once may give both the same file.
    """
    from numba import config
    from numba.core.caching import IndexDataCacheFile

    def in_turn(method):
        @wraps(method)
        def locked(*arguments):
            with (folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return method(*arguments)

        return locked

    folder.mkdir(parents=True, exist_ok=True)
    config.CACHE_DIR = str(folder)
    IndexDataCacheFile.load = in_turn(IndexDataCacheFile.load)
    IndexDataCacheFile.save = in_turn(IndexDataCacheFile.save)


worker = os.environ.get("PYTEST_XDIST_WORKER")
if worker:
    # Before NumPy and numba are imported, here and in the scripts that tests start.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    compiled = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / ".pytest_cache" / "numba")
    # Scripts that tests start take no lock: they have a folder for each process.
    os.environ["NUMBA_CACHE_DIR"] = str(compiled / worker)
    share_compiled_code(compiled / "shared")
