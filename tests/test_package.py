"""What the package says about itself."""

import importlib
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import dpglm
from dpglm.audit import Claim, audit_function

from . import oldest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_package_says_that_it_is_typed():
    assert resources.files("dpglm").joinpath("py.typed").is_file()


def test_package_project_and_citation_name_the_same_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {PROJECT['version']}" in citation
    assert dpglm.__version__ == PROJECT["version"]


def test_every_name_of_the_package_is_there_though_estimators_are_loaded_late():
    assert {*dpglm.__all__} <= {*dir(dpglm)}
    assert all(getattr(dpglm, name).__module__.startswith("dpglm.") for name in dpglm.__all__)
    assert dpglm.solvers.SOLVERS and not hasattr(dpglm, "no_such_name")


def test_the_oldest_versions_are_the_lower_bounds():
    project = {
        "name": "it",
        "dependencies": ["a-b>=2.0"],
        "optional-dependencies": {"x": ["it[y]", "c[d]>=1"]},
    }
    assert oldest.constraints(project) == ["a-b==2.0.*", "c==1.*"]
    with pytest.raises(ValueError, match="'a<3' must have the form"):
        oldest.constraints({"name": "it", "dependencies": ["a<3"]})


def test_every_dependency_has_a_lower_bound():
    assert {line.split("==")[0] for line in oldest.constraints(PROJECT)} >= {
        "numpy",
        "typer",
        "pytest",
        "mypy",
    }


def hide(name, monkeypatch):
    """Make it look as if a package were not installed."""
    for module in [module for module in sys.modules if module.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_line_without_its_extra_ends_with_one_sentence(missing, monkeypatch):
    hide(missing, monkeypatch)
    monkeypatch.delitem(sys.modules, "dpglm.cli", raising=False)
    with pytest.raises(
        SystemExit, match=r"^The command line needs typer and rich: pip install 'dpglm\[cli\]'$"
    ):
        importlib.import_module("dpglm.cli")


def test_a_progress_bar_without_its_extra_names_it(monkeypatch):
    hide("rich", monkeypatch)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dpglm\[cli\]'$"):
        audit_function(lambda second: 0.0, Claim(1.0, 0.0), runs=10, progress=True)
    assert not audit_function(lambda second: 0.0, Claim(1.0, 0.0), runs=10).violated
