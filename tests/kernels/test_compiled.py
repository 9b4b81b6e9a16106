"""Compiled code: its cache on disk, and the size of its signatures."""

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import dpglm
from dpglm.arrays import ROUNDING
from dpglm.kernels import compiled, exact

KERNELS = Path(dpglm.__file__).parent / "kernels"
FILES = sorted(KERNELS.glob("*.py"))


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the kernels, and what loads it as a fresh process would: (folder, load)."""
    name = "copied_kernels"
    shutil.copytree(KERNELS, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.syspath_prepend(tmp_path)

    def load():
        for module in [module for module in sys.modules if module.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        importlib.invalidate_caches()
        return importlib.import_module(f"{name}.exact")

    yield tmp_path / name, load
    for module in [module for module in sys.modules if module.split(".")[0] == name]:
        del sys.modules[module]


def cut_term(kernels):
    """What a kernel makes of a term of 3 that is cut to 2 by a function of another file, and its loads."""
    out = np.zeros(1, dtype=np.int64)
    kernels.dense_add_cut(
        np.ones((1, 1)), None, 0, np.array([3.0]), np.array([2.0]), np.array([ROUNDING]), out
    )
    return out[0], sum(kernels.dense_add_cut.stats.cache_hits.values())


def test_an_edit_of_a_callee_is_noticed_by_its_callers_and_nothing_else_is_compiled_twice(copy):
    folder, load = copy
    assert cut_term(load()) == (2, 0)
    assert cut_term(load()) == (2, 1)
    callee = folder / "formulas.py"
    source, formula = callee.read_text(), "return min(max(value, -limit), limit)"
    assert source.count(formula) == 1
    callee.write_text(source.replace(formula, "return min(max(value, -limit), limit) + 1.0"))
    assert cut_term(load()) == (3, 0)
    assert cut_term(load()) == (3, 1)


def test_a_cache_that_names_types_of_another_version_is_not_read(copy):
    folder, load = copy
    entries = np.array([0, 2], dtype=np.uint32), np.array([0, 1], dtype=np.uint32), np.ones(2)

    def lines(kernels, name):
        arguments = importlib.import_module(f"{kernels.__package__}.arguments")
        out = np.empty(1)
        kernels.sparse_dots(getattr(arguments, name)(*entries), None, 0, np.ones(2), np.empty(8), out)
        return out[0]

    assert lines(load(), "Compressed") == 2.0
    for path in folder.glob("*.py"):
        path.write_text(path.read_text().replace("Compressed", "Renamed"))
    assert lines(load(), "Renamed") == 2.0


def test_a_part_is_refused_if_python_calls_it_also_after_a_compiled_function_has():
    for _ in range(2):
        with pytest.raises(TypeError, match="grid_of is part of compiled functions"):
            exact.grid_of(3.0)
        assert njit(lambda rounding: exact.grid_of(rounding))(1.5 * 2.0**52) == 1.0
    assert exact.grid_of.py_func(1.5 * 2.0**52) == 1.0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_kernel_has_more_than_twelve_parameters(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert len(node.args.args) <= 12, node.name


def test_numba_and_scikit_learn_are_loaded_by_those_who_use_them_only():
    code = (
        "import sys, dpglm, dpglm.cli, dpglm.kernels.arguments; "
        "sys.exit(bool({'numba', 'sklearn', 'scipy.stats'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_processes_that_share_a_cache_take_turns(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    lock = tmp_path / "cache" / "lock"
    with compiled._lock(lock.parent), lock.open("w") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("")
    with compiled._lock(tmp_path / "file" / "cache"):
        pass
