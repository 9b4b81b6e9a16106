"""The size and the shape of the code: ceilings that only fall."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "dpglm"
FILES = sorted(SRC.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in FILES}

MOST_FILES = 200
LONGEST_FILE = 600
COMPLEXITY = 15
FAN_OUT = 20
FILES_OF_A_FIT = 70

ALSO_WIDE = {"audit/cases.py": 29, "queries/__init__.py": 28}
"""Modules that import more than the limit: lists of what there is."""

BRANCHES = (ast.If, ast.For, ast.While, ast.IfExp, ast.ExceptHandler, ast.comprehension, ast.Assert)


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def complexity(function: ast.FunctionDef) -> int:
    """One, and one more for each branch and each further operand of and / or."""
    nodes = list(ast.walk(function))
    operands = sum(len(node.values) - 1 for node in nodes if isinstance(node, ast.BoolOp))
    return 1 + sum(isinstance(node, BRANCHES) for node in nodes) + operands


def imported(path: Path) -> set[Path]:
    """Modules of dpglm that a module imports by relative imports."""
    modules = set()
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                places = (base / f"{alias.name}.py", base.with_suffix(".py"), base / "__init__.py")
                modules.update([place for place in places if place in TREES][:1])
    return modules


def test_there_are_few_files_none_of_which_is_long():
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in FILES}
    assert len(FILES) <= MOST_FILES
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FILE}


def test_functions_outside_of_kernels_are_simple():
    found = {
        f"{name_of(path)}:{node.name}": complexity(node)
        for path, tree in TREES.items() if "kernels" not in path.parts
        for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    }  # fmt: skip
    assert len(found) > 2_000
    assert not {name: k for name, k in found.items() if k > COMPLEXITY}


def test_a_module_imports_few_others():
    found = {name_of(path): len(imported(path)) for path in FILES}
    assert max(found.values()) > 10
    assert not {name: k for name, k in found.items() if k > ALSO_WIDE.get(name, FAN_OUT)}


WALK = """
import os, sys, warnings
import numpy as np
import dpglm
warnings.simplefilter("ignore")
root, files = os.path.dirname(dpglm.__file__) + os.sep, set()
X = np.random.default_rng(0).normal(size=(500, 5)) / 3
def fit():
    dpglm.LogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
fit()
sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename))
fit()
sys.setprofile(None)
print(sum(name.startswith(root) for name in files))
"""


def test_a_default_fit_visits_few_files():
    run = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, check=True)
    assert 20 < int(run.stdout) <= FILES_OF_A_FIT


@pytest.mark.parametrize(
    ("source", "expected"),
    [("def f(x):\n    return x", 1), ("def f(x):\n    return [y for y in x if y and x or y]", 4)],
)
def test_complexity_counts_branches_and_operands(source, expected):
    assert complexity(ast.parse(source).body[0]) == expected


def test_the_page_on_fits_names_what_there_is():
    page = (SRC.parents[1] / "docs" / "fit.md").read_text()
    named = re.findall(r"`([\w/]+\.py):(\w+)`", page)
    assert len(named) > 15
    for path, name in named:
        assert name in {getattr(node, "name", "") for node in ast.walk(TREES[SRC / path])}, f"{path}:{name}"
