"""The helper that opens pages finds what is wrong with a page."""

from __future__ import annotations

from . import browser

GOOD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>t</title></head><body><main>
<h1>Fine</h1><svg role="img" width="80" height="20" aria-labelledby="a b"><title id="a">A line</title>
<desc id="b">It rises.</desc><path d="M0 20L80 0" stroke="#000"/></svg></main></body></html>"""
BAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>t</title></head><body><main>
<h1>Bad</h1><p style="color:#bbb;background:#fff">Hardly visible</p><div style="width:900px">wide</div>
<svg role="img" width="0" height="0"></svg><script>console.error('told'); nowhere()</script>
<img alt="far" src="http://example.invalid/a.png"></main></body></html>"""


def test_a_page_that_is_bad_is_told_from_one_that_is_fine(tmp_path):
    for name, text in (("good", GOOD), ("bad", BAD)):
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    with browser.chromium() as chromium:
        with browser.opened(tmp_path / "good.html", browser.PHONE, within=chromium) as good:
            assert not good.errors and not good.foreign and not good.overflow() and not good.violations()
            (chart,) = good.charts()
            assert chart["title"] == "A line" and chart["width"] == 80 and chart["shapes"] == 1
        with browser.opened(tmp_path / "bad.html", browser.PHONE, within=chromium) as bad:
            assert bad.foreign == ["http://example.invalid/a.png"]
            told = "\n".join(bad.errors)
            assert "told" in told and "nowhere" in told and "not loaded" in told
            assert any("div" in what for what in bad.overflow())
            found = "\n".join(bad.violations())
            assert "color-contrast" in found and "svg-img-alt" in found
            assert bad.charts()[0]["shapes"] == 0
            bad.resize(browser.DESK)
            assert not bad.overflow()
