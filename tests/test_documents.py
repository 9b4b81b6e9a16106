"""The examples of README and documentation run as they are printed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
GALLERY = ROOT / "docs" / "auto_examples"
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def examples(page):
    return BLOCK.findall(page.read_text())


@pytest.mark.filterwarnings("ignore::dpglm.errors.PrivacyWarning")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for example in examples(page):
        exec(compile(example, str(page), "exec"), namespace)


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_links_of_a_page_lead_somewhere(page):
    for link in LINK.findall(page.read_text()):
        target = (page.parent / link.split()[0]).resolve()
        if GALLERY in target.parents:  # the build makes these pages of the examples
            target = ROOT / "examples" / target.relative_to(GALLERY)
            target = target.with_suffix(".py") if target.name != "index.rst" else target.parent / "README.rst"
        assert target.exists(), link


def test_the_readme_opens_with_the_two_commands():
    opening = (ROOT / "README.md").read_text().split("## ")[0]
    assert "make demo" in opening and "make test" in opening


def test_the_readme_example_reaches_what_it_says(capsys):
    namespace = {}
    exec(examples(ROOT / "README.md")[0], namespace)
    accuracy = float(capsys.readouterr().out.splitlines()[-1])
    assert abs(accuracy - 0.850) < 0.01
