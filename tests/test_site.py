"""The site: every exported name and link is there, and its main pages are read in a browser.

Tests of built pages need `make docs`; where it was not run, or where there is no browser, the summary of the
run says so.
"""

from __future__ import annotations

import io
import math
import pkgutil
import re
import shlex
from contextlib import redirect_stdout
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from scipy.stats import norm

import dpglm
from dpglm.accounting import gaussian_mu

from . import browser
from .test_documents import examples

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs" / "_build" / "html"
NOT_BUILT = f"{browser.NOT_RUN}: the site is not built, run make docs"
REFERENCE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
LISTED = set(re.findall(r"^   ([\w.]+)$", REFERENCE, re.MULTILINE))


# What is documented


def test_the_reference_lists_every_name_that_the_package_exports():
    assert {*dpglm.__all__} <= LISTED


def test_the_reference_lists_every_public_module_and_nothing_that_is_not_there():
    modules = {info.name: import_module(f"dpglm.{info.name}") for info in pkgutil.iter_modules(dpglm.__path__)
               if info.name not in ("__main__", "demo")}  # fmt: skip
    exporting = {name for name, module in modules.items() if hasattr(module, "__all__")}
    assert exporting - {"estimators"} <= LISTED
    estimators = {*modules["estimators"].__all__}
    assert estimators <= LISTED | {name.removeprefix("estimators.") for name in LISTED}
    for name in LISTED:
        where = "dpglm"
        for part in name.split("."):
            found = getattr(import_module(where), part, None) or import_module(f"{where}.{part}")
            where = f"{where}.{part}"
        assert found is not None


@cache
def built():
    """The parsed pages of the built site, by path."""
    if not (SITE / "index.html").exists():
        pytest.skip(NOT_BUILT)
    pages = (page for page in sorted(SITE.rglob("*.html")) if SITE / "_static" not in page.parents)
    return {page: Parsed(page) for page in pages}


class Parsed(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, page):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def test_every_exported_name_has_a_page():
    pages = built()
    names = ["dpglm", *(f"dpglm.{name}" for name in LISTED if name.islower() and "_" not in name)]
    functions = {"dpglm.check", "dpglm.evaluate"}
    for module in map(import_module, (name for name in names if name not in functions)):
        for name in getattr(module, "__all__", ()):
            anchor = f"{module.__name__}.{name}"
            own = SITE / "generated" / f"{anchor}.html"
            top = SITE / "generated" / f"dpglm.{name}.html"
            among = SITE / "generated" / f"{module.__name__}.html"  # constants
            anywhere = own in pages or (name in dpglm.__all__ and top in pages)
            assert anywhere or anchor in pages[among].anchors, anchor


def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere():
    pages = built()
    broken = []
    for page, parsed in pages.items():
        for link in parsed.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue  # not ours; nothing is fetched in a test
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            missing = target in pages and anchor and anchor not in pages[target].anchors
            if not target.exists() or missing:
                broken.append(f"{page.relative_to(SITE)}: {link}")
    assert broken == []
    sources = {link for parsed in pages.values() for link in parsed.links if re.match(r"(https?:)?//", link)}
    loaded = {link for link in sources if re.search(r"\.(js|css|woff2?|json)($|\?)", link)}
    assert loaded == set()


# Pages in a browser

MAIN = (
    "index.html", "start.html", "which_solver.html", "comparison.html", "choosing.html",
    "guide/manager.html", "auto_examples/index.html", "auto_examples/first/plot_epsilon.html",
    "generated/dpglm.LogisticRegression.html", "proofs/composition.html", "search.html",
)  # fmt: skip


@pytest.fixture(scope="module")
def chromium():
    if not (SITE / "index.html").exists():
        pytest.skip(NOT_BUILT)
    with browser.chromium() as running:
        yield running


@pytest.mark.parametrize("name", MAIN)
def test_a_main_page_is_read_on_a_phone_and_at_a_desk(name, chromium):
    for width, dark in ((browser.PHONE, False), (browser.DESK, True)):
        with browser.opened(SITE / name, width, dark=dark, within=chromium, root=SITE) as shown:
            assert shown.errors == [] and shown.foreign == []
            assert shown.overflow() == []
            assert (
                shown.page.evaluate(
                    "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
                )
                == []
            )
            if dark:
                assert shown.page.evaluate("document.documentElement.dataset.theme") == "dark"
            else:
                assert shown.violations() == []


def test_formulas_are_drawn_and_no_tex_is_left(chromium):
    with browser.opened(SITE / "proofs" / "composition.html", within=chromium, root=SITE) as shown:
        sizes = shown.page.eval_on_selector_all(
            "math", "found => found.map(m => m.getBoundingClientRect().height)"
        )
        assert len(sizes) > 50 and min(sizes) > 5
        text = shown.page.inner_text("article")
        assert not re.search(r"\\[a-zA-Z]{2,}|\$\$", text)


def test_the_chart_of_solvers_is_drawn_and_says_what_it_shows(chromium):
    with browser.opened(SITE / "which_solver.html", within=chromium, root=SITE) as shown:
        (chart,) = shown.charts("svg.which-solver")
        assert chart["title"] == "Which solver when" and chart["description"] and chart["shapes"] > 40


def test_the_search_finds_a_word_without_a_server(chromium):
    with browser.opened(SITE / "search.html", within=chromium, root=SITE) as shown:
        shown.page.wait_for_load_state("networkidle")
        shown.page.goto(f"{(SITE / 'search.html').as_uri()}?q=epsilon")
        shown.page.wait_for_selector("#search-results li", timeout=20_000)
        assert shown.errors == []


# Pages whose figures and commands are run


def test_the_shell_commands_of_the_first_tutorial_run(tmp_path, monkeypatch):
    from dpglm.cli import app

    page = ROOT / "docs" / "start.md"
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(python|console)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    for kind, text in blocks:
        for line in text.splitlines() if kind == "console" else ():
            assert not app(shlex.split(line)[1:], standalone_mode=False), line
        if kind == "python" and "import" in text and "dpglm" in text:
            break  # the same in Python, which another test runs
        if kind == "python":
            exec(compile(text, str(page), "exec"), {})
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "purpose" in report and (tmp_path / "predictions.csv").stat().st_size > 6_000


def rounded_up(share, digits):
    """In per cent: a promise must not be shortened."""
    return f"{math.ceil(10 ** (digits + 2) * share) / 10**digits:.{digits}f}"


def test_the_figures_for_a_manager_are_what_their_program_prints():
    page = ROOT / "docs" / "guide" / "manager.md"
    told = re.search(r"^```text\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)[1]
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(examples(page)[0], str(page), "exec"), {})
    assert printed.getvalue() == told
    for epsilon, chance in re.findall(r"^\| ([\d.]+) \| ([\d.]+) % \|", page.read_text(), re.MULTILINE):
        assert rounded_up(1 / (1 + math.exp(-float(epsilon))), len(chance.partition(".")[2])) == chance


def test_the_landing_page_states_the_chances_of_its_own_fit():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    exact = norm.cdf(gaussian_mu(1.0, 1 / 32_561**2) / 2)
    assert f"**{rounded_up(exact, 1)} %**" in page
    assert f"{rounded_up(1 / (1 + math.exp(-1)), 1)} %" in page


def test_the_readme_is_short_and_shows_one_picture():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 160
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", readme)
    assert "<svg" in (ROOT / picture).read_text(encoding="utf-8")[:2_000]


# The project's forms and workflows


def load(name):
    return yaml.safe_load((ROOT / ".github" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["bug", "privacy_flaw", "new_part"])
def test_a_form_for_issues_has_what_a_form_needs(name):
    form = load(f"ISSUE_TEMPLATE/{name}.yml")
    assert form["name"] and form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) >= 2
    assert all(field["attributes"]["label"] for field in fields)


def test_workflows_run_the_commands_of_the_makefile_with_the_least_rights():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    flows = {path.stem: load(f"workflows/{path.name}") for path in (ROOT / ".github/workflows").glob("*.yml")}
    assert {*flows} == {"tests", "docs", "release", "audit"}
    for flow in flows.values():
        assert flow["permissions"] == {"contents": "read"}
        steps = [step for job in flow["jobs"].values() for step in job["steps"]]
        targets = {match for step in steps for match in re.findall(r"\bmake ([\w-]+)", step.get("run", ""))}
        assert targets and all(f"\n{target}:" in makefile for target in targets)
    matrix = flows["tests"]["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    publish = flows["release"]["jobs"]["publish"]
    assert publish["permissions"]["id-token"] == "write" and "secrets" not in str(flows["release"])
