"""Reports as readers see them, in headless Chromium."""

from __future__ import annotations

from dpglm import Ledger, LogisticRegression, make_private_pipeline

from .. import browser
from . import facts


def test_reports_are_drawn_readable_and_alone_on_phones_and_desks_in_light_and_dark(tmp_path):
    address = f"sqlite:///{tmp_path / 'b.db'}"
    Ledger(address).create("homes", epsilon=9, delta=1e-6)
    paid = LogisticRegression(0.5, ledger=f"{address}#homes")
    whole = make_private_pipeline(facts.SCHEMA, paid).fit(facts.table()).report(
        evaluation=facts.scores(), audit=facts.VERDICT, account=f"{address}#homes"
    )  # fmt: skip
    pages = {
        "whole": (whole, 6, (False, True)),
        "intervals": (facts.report("intervals"), 4, (False,)),
        "classes": (facts.report("three classes"), 6, (True,)),
        "weak": (facts.report("no noise"), 1, (False,)),
    }
    with browser.chromium() as chromium:
        for name, (report, charts, modes) in pages.items():
            path = report.save(tmp_path / f"{name}.html")
            for dark in modes:
                with browser.opened(path, browser.DESK, dark=dark, within=chromium) as shown:
                    for width in (browser.DESK, browser.PHONE):
                        shown.resize(width)
                        assert shown.overflow() == [], (name, width, dark)
                        drawn = shown.charts()
                        assert len(drawn) == charts, (name, width, dark)
                        for chart in drawn:
                            assert chart["title"] and chart["description"], (name, chart)
                            assert chart["shapes"] > 1 and chart["height"] > 20, (name, chart)
                            assert chart["width"] > 0.7 * min(width, 800), (name, width, chart)
                            assert chart["outside"] == [], (name, width, chart)
                    if name == "whole":
                        shown.page.eval_on_selector_all("details", "all => all.forEach(d => d.open = true)")
                        assert shown.overflow() == []
                        assert shown.violations() == [], dark
                    assert shown.errors == [] and shown.foreign == []
