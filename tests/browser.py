"""Pages in headless Chromium: what they log, what they fetch, what they draw, and whether they can be read.

Tests of pages call `opened` and are skipped where there is no browser; the summary of the run then says so
(conftest.py). Debian's package `chromium` is enough, or a Chromium of playwright's own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NOT_RUN = "no page was opened in a browser"
"""The reason of a skip begins with it."""

PHONE, DESK = 360, 1_400
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@dataclass
class Opened:
    """An open page.

    Attributes
    ----------
    page : playwright.sync_api.Page
    errors : list of str
        Errors on the console, exceptions of scripts, and files that could not be loaded.
    foreign : list of str
        Addresses outside of the page's own folder that were asked for; none of these requests is let out.
    """

    page: Any
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def resize(self, width: int, height: int = 900) -> None:
        """Show the page in a window of another size."""
        self.page.set_viewport_size({"width": width, "height": height})

    def overflow(self) -> list[str]:
        """What is wider than the window, unless it scrolls in a box of its own, as tables and code may."""
        return self.page.evaluate(
            """() => {
              const width = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= width) return [];
              const scrolls = e => e && e !== document.body && e !== document.documentElement &&
                (getComputedStyle(e).overflowX !== 'visible' || scrolls(e.parentElement));
              const wide = [...document.body.querySelectorAll('*')].filter(
                e => e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement));
              const named = wide.map(e => e.tagName.toLowerCase() + (e.id && '#' + e.id) +
                ' ends at ' + Math.round(e.getBoundingClientRect().right));
              return named.length ? named : ['the page'];
            }"""
        )

    def charts(self, selector: str = "svg[role=img]") -> list[dict[str, Any]]:
        """For each chart its title, its size, how many shapes are drawn, and the words that leave it."""
        return self.page.eval_on_selector_all(
            selector,
            """found => found.map(svg => {
              const box = svg.getBoundingClientRect();
              const shapes = [...svg.querySelectorAll('path,rect,line,circle,polyline,polygon,text')];
              const drawn = shapes.filter(s => { const b = s.getBoundingClientRect();
                return b.width + b.height > 0; });
              return {title: svg.querySelector('title')?.textContent ?? '',
                description: svg.querySelector('desc')?.textContent ?? '',
                width: box.width, height: box.height, shapes: drawn.length,
                outside: [...svg.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect();
                  return b.left < box.left - 1 || b.right > box.right + 1; }).map(t => t.textContent)};
            })""",
        )

    def violations(self) -> list[str]:
        """What axe-core finds: WCAG 2.2 A and AA, contrast and labels among them, and its best practices."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]

    def shot(self, path: Path) -> None:
        """Save the whole page as a picture."""
        self.page.screenshot(path=path, full_page=True)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser, for several pages; skips the test if there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason=f"{NOT_RUN}: playwright is not installed")
    pytest.importorskip("axe_playwright_python", reason=f"{NOT_RUN}: axe-playwright-python is not installed")
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    # Chromium refuses its sandbox to root, which containers usually run as; pages here are our own.
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as driver:
        own = Path(driver.chromium.executable_path)
        if path is None and not own.exists():
            pytest.skip(f"{NOT_RUN}: there is no Chromium; install Debian's package chromium")
        browser = driver.chromium.launch(executable_path=path or own, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(
    path: Path, width: int = DESK, *, dark: bool = False, within: Any = None, root: Path | None = None
) -> Iterator[Opened]:
    """A page from a file, in a window of this width.

    Parameters
    ----------
    path : Path
        An HTML file.
    width : int
        Of the window, in pixels.
    dark : bool
        Whether the reader prefers dark pages.
    within : browser, optional
        From `chromium`; by default one is started for this page.
    root : Path, optional
        The page may load files of this folder; by default of its own.
    """
    if within is None:
        with chromium() as browser, opened(path, width, dark=dark, within=browser, root=root) as shown:
            yield shown
        return
    home = (root or path.parent).resolve().as_uri()
    context = within.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    shown = Opened(page)

    def sorted_out(route: Any) -> None:
        address = route.request.url
        if address.startswith((home, "data:", "blob:")):
            route.continue_()
        else:
            shown.foreign.append(address)
            route.abort()

    page.route("**/*", sorted_out)
    page.on("console", lambda message: message.type == "error" and shown.errors.append(message.text))
    page.on("pageerror", lambda error: shown.errors.append(str(error)))
    page.on("requestfailed", lambda request: shown.errors.append(f"not loaded: {request.url}"))
    try:
        page.goto(path.resolve().as_uri(), wait_until="load")
        yield shown
    finally:
        context.close()
