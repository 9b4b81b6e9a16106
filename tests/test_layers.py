"""The direction of imports: which part of dpglm may know which other part and which library."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

SRC = Path(__file__).resolve().parents[1] / "src"
FILES = sorted(PurePosixPath(path.relative_to(SRC).as_posix()) for path in SRC.rglob("*.py"))

CORE = {
    "accounting", "arrays", "bounds", "codec", "curator", "data", "display", "entries", "errors",
    "evaluation", "inference", "kernels", "ledger", "losses", "mechanisms", "penalties", "plan", "privacy",
    "problem", "progress", "queries", "report", "schema", "scores", "solvers", "strict", "tables",
    "threads",
}  # fmt: skip
SKIN = CORE | {"datasets", "estimators", "fit"}
ROOT = "dpglm"  # the names that the package itself exports

EVERYWHERE = {"arrays", "codec", "errors", "strict"}

# What each part may import besides itself and what is for `EVERYWHERE`.
MAY_IMPORT = {
    "accounting": {"kernels"},
    "arrays": set(),
    "bounds": {"entries"},
    "codec": set(),
    "datasets": set(),
    "entries": set(),
    "errors": set(),
    "losses": set(),
    "penalties": {"kernels"},
    "display": set(),
    "progress": set(),
    "strict": set(),
    "threads": set(),
    "privacy": {"accounting", "display"},
    "inference": {"display", "privacy"},
    "kernels": set(),
    "tables": {"kernels"},
    "data": {"bounds", "entries", "kernels", "losses", "progress", "scores", "tables", "threads"},
    "queries": {
        "bounds", "data", "kernels", "losses", "mechanisms", "penalties", "privacy", "scores", "tables",
        "threads",
    },
    "mechanisms": {"accounting", "kernels", "privacy", "threads"},
    "schema": {"bounds", "data", "penalties"},
    "report": {"accounting", "display", "inference", "plan", "privacy"},
    "scores": {"losses"},
    "evaluation": {
        "curator", "display", "inference", "losses", "mechanisms", "plan", "privacy", "queries", "scores",
    },
    "problem": {"losses", "penalties", "bounds"},
    "plan": {"mechanisms", "accounting", "privacy", "display"},
    "curator": {"data", "queries", "mechanisms", "accounting", "privacy", "progress", "tables"},
    "solvers": {
        "plan", "problem", "queries", "mechanisms", "curator", "accounting", "privacy", "losses",
        "penalties", "bounds", "tables",
    },
    "ledger": {"accounting", "plan", "privacy"},
    "estimators": SKIN,
    "fit": CORE,
    "audit": SKIN | {ROOT},
    "testing": SKIN | {ROOT},
    "cli": SKIN | {"audit", ROOT},
    "__main__": {"cli"},
    "demo": SKIN | {"cli", ROOT},
    ROOT: SKIN,
}  # fmt: skip

WRITTEN = ("aes", "simd")  # kernels in the language of the compiler
LIBRARIES = {
    "numba": lambda path: path.as_posix() in {f"dpglm/kernels/{name}.py" for name in ("compiled", *WRITTEN)},
    "llvmlite": lambda path: path.as_posix() in {f"dpglm/kernels/{name}.py" for name in WRITTEN},
    "sklearn": lambda path: (
        layer_of(path) in {"estimators", "fit", "datasets", "demo"}
        or path.as_posix() == "dpglm/schema/encoder.py"
    ),
    "dask": lambda path: path.as_posix().startswith("dpglm/data/cluster/"),
    "distributed": lambda path: path.as_posix().startswith("dpglm/data/cluster/"),
    "pyarrow": lambda path: path.as_posix() == "dpglm/data/adapters.py",
    "polars": lambda path: path.as_posix() == "dpglm/data/adapters.py",
    "duckdb": lambda path: path.as_posix() == "dpglm/data/adapters.py",
    "onnx": lambda path: path.as_posix() == "dpglm/estimators/exports.py",
    "skl2onnx": lambda path: path.as_posix() == "dpglm/estimators/exports.py",
    "skops": lambda path: path.as_posix() == "dpglm/estimators/exports.py",
    "sqlalchemy": lambda path: path.as_posix() == "dpglm/ledger/storage.py",
}
LIBRARIES_AT_MODULE_LEVEL = {
    "matplotlib": lambda path: layer_of(path) == "demo",
    "dask": lambda path: False,
    "distributed": lambda path: False,
    "pyarrow": lambda path: False,
    "polars": lambda path: False,
    "duckdb": lambda path: False,
    "onnx": lambda path: False,
    "skl2onnx": lambda path: False,
    "skops": lambda path: False,
}


@dataclass(frozen=True)
class Import:
    name: str
    at_module_level: bool


def anywhere(path: PurePosixPath) -> bool:
    return True


def layer_of(path: PurePosixPath) -> str:
    part = path.parts[1].removesuffix(".py")
    return ROOT if part == "__init__" else part


def imports(tree: ast.AST, path: PurePosixPath, at_module_level: bool = True) -> Iterator[Import]:
    """Yield every import below a node by its absolute dotted name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, at_module_level)
        elif isinstance(node, ast.ImportFrom):
            anchor = path.parts[: len(path.parts) - node.level] if node.level else ()
            base = ".".join([*anchor, *filter(None, [node.module])])
            for alias in node.names:
                yield Import(f"{base}.{alias.name}", at_module_level)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(node, path, at_module_level and not inside)


def violations(source: str, path: PurePosixPath) -> list[str]:
    """Return what the imports of one file do that the tables above forbid."""
    layer = layer_of(path)
    found = []
    for item in imports(ast.parse(source), path):
        top, *rest = item.name.split(".")
        if top == "dpglm":
            target = rest[0] if rest and rest[0] in MAY_IMPORT else ROOT
            if target not in MAY_IMPORT.get(layer, set()) | EVERYWHERE | {layer}:
                found.append(f"{path}: {layer} must not import {target} ({item.name})")
            if layer == "kernels" and target != layer:
                found.append(f"{path}: kernels use nothing else of dpglm ({item.name})")
        elif not LIBRARIES.get(top, anywhere)(path):
            found.append(f"{path}: {top} has no place here")
        elif item.at_module_level and not LIBRARIES_AT_MODULE_LEVEL.get(top, anywhere)(path):
            found.append(f"{path}: {top} must be imported where it is used")
    return found


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_follow_the_layers(path):
    assert violations((SRC / path).read_text(encoding="utf-8"), path) == []


def test_every_part_has_a_row_in_the_table_and_every_row_a_part():
    assert {layer_of(path) for path in FILES} == set(MAY_IMPORT)


def test_solvers_never_see_data():
    assert "data" not in MAY_IMPORT["solvers"]


def test_the_table_has_no_cycles():
    rows = {layer: set(targets) for layer, targets in MAY_IMPORT.items()}
    while rows:
        free = {layer for layer, targets in rows.items() if not (targets - {layer}) & set(rows)}
        assert free, f"these parts import each other in a circle: {sorted(rows)}"
        rows = {layer: targets for layer, targets in rows.items() if layer not in free}


BAD = [
    ("dpglm/losses/classification.py", "from dpglm.penalties import L1"),
    ("dpglm/losses/classification.py", "from ..penalties.separable import L1"),
    ("dpglm/losses/__init__.py", "from .. import data"),
    ("dpglm/accounting/compose.py", "import dpglm.privacy"),
    ("dpglm/bounds.py", "from .data import Dense"),
    ("dpglm/data/resident.py", "from dpglm.mechanisms import Gaussian"),
    ("dpglm/losses/regression.py", "from dpglm import data"),
    ("dpglm/solvers/gradient_descent.py", "from dpglm.data.resident import Dense"),
    ("dpglm/solvers/gradient_descent.py", "from ..data.records import Records"),
    ("dpglm/tables.py", "from .data.records import Records"),
    ("dpglm/solvers/gradient_descent.py", "def run():\n    from ..data import Dense"),
    ("dpglm/solvers/gradient_descent.py", "from dpglm import LogisticRegression"),
    ("dpglm/solvers/gradient_descent.py", "import dpglm"),
    ("dpglm/plan/plan.py", "from .. import solvers"),
    ("dpglm/estimators/base.py", "from dpglm.testing import check_query"),
    ("dpglm/estimators/base.py", "from ..demo import main"),
    ("dpglm/data/resident.py", "import numba"),
    ("dpglm/data/resident.py", "def f():\n    from numba import njit"),
    ("dpglm/data/kernels.py", "from numba import njit"),
    ("dpglm/solvers/gradient_descent.py", "from ..kernels.coordinate import descend_dense"),
    ("dpglm/kernels/coordinate.py", "from numba import njit"),
    ("dpglm/kernels/coordinate.py", "from llvmlite import ir"),
    ("dpglm/kernels/coordinate.py", "from ..losses import Logistic"),
    ("dpglm/kernels/coordinate.py", "from ..errors import DpglmError"),
    ("dpglm/losses/regression.py", "from sklearn.linear_model import HuberRegressor"),
    ("dpglm/schema/schema.py", "from sklearn.base import BaseEstimator"),
    ("dpglm/schema/schema.py", "from ..estimators import LogisticRegression"),
    ("dpglm/data/chunked.py", "import dask.array"),
    ("dpglm/data/adapters.py", "import pyarrow"),
    ("dpglm/data/columnar.py", "def f():\n    import pyarrow"),
    ("dpglm/data/cluster/table.py", "import dask.array"),
    ("dpglm/estimators/base.py", "def f():\n    import distributed"),
    ("dpglm/estimators/base.py", "import matplotlib.pyplot as plt"),
    ("dpglm/estimators/base.py", "if True:\n    from matplotlib import pyplot"),
    ("dpglm/__init__.py", "from .demo import main"),
    ("dpglm/nowhere.py", "from .losses import Huber"),
]
GOOD = [
    (
        "dpglm/losses/classification.py",
        "from .base import Loss\nfrom ..errors import DpglmError\nimport numpy",
    ),
    ("dpglm/losses/__init__.py", "from .base import Loss\nfrom . import regression"),
    ("dpglm/data/resident.py", "from dpglm.bounds import Bounds\nfrom ..kernels.batch import dense_dots"),
    ("dpglm/data/cluster/table.py", "def f():\n    import dask.array"),
    ("dpglm/kernels/compiled.py", "from numba import njit"),
    ("dpglm/kernels/coordinate.py", "from .compiled import compiled\nfrom .formulas import slope"),
    ("dpglm/testing.py", "from .kernels.formulas import dual_steps"),
    ("dpglm/solvers/gradient_descent.py", "from ..curator import Curator\nfrom dpglm import losses"),
    ("dpglm/estimators/base.py", "from sklearn.base import BaseEstimator\nfrom ..data import as_data"),
    ("dpglm/plan/plan.py", "def plot():\n    import matplotlib.pyplot"),
    ("dpglm/demo.py", "import matplotlib.pyplot\nimport sklearn\nfrom dpglm import LogisticRegression"),
    ("dpglm/__init__.py", "from .estimators import LogisticRegression\nfrom .bounds import Bounds"),
]


@pytest.mark.parametrize(("path", "source"), BAD)
def test_the_checker_catches_a_bad_import(path, source):
    assert len(violations(source, PurePosixPath(path))) >= 1


@pytest.mark.parametrize(("path", "source"), GOOD)
def test_the_checker_accepts_a_good_import(path, source):
    assert violations(source, PurePosixPath(path)) == []
