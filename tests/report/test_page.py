"""The page of a report: what it says, and that no record shows through."""

from __future__ import annotations

import re
import time
from typing import ClassVar

import numpy as np
import pytest

from dpglm import Ledger, LogisticRegression, make_private_pipeline
from dpglm.audit import Finding
from dpglm.audit import Report as Findings
from dpglm.audit.transcript import Recorder, Replayer
from dpglm.datasets import load_adult
from dpglm.display import render
from dpglm.report import page
from dpglm.report.page import coefficients
from dpglm.solvers import Newton

from ..pages import Page
from . import facts


@pytest.mark.parametrize("kind", sorted(facts.MODELS))
def test_the_page_is_well_formed_and_needs_nothing_but_itself(kind):
    text = facts.report(kind).html()
    found = Page(text)
    assert "<script" not in text and "http" not in text and "url(" not in text and "@import" not in text
    assert len(found.ids) == len(set(found.ids))
    assert not found.tags & {"link", "img", "iframe", "object", "base"}
    for tag, attributes in found.seen:
        assert not any(name.startswith("on") for name in attributes)
        if tag == "th":
            assert attributes["scope"] in ("row", "col")
        for name in filter(None, attributes.get("aria-labelledby", "").split()):
            assert name in found.ids
        if tag == "a":
            assert attributes["href"].removeprefix("#") in found.ids
    stated = facts.report(kind).facts
    words = " ".join(found.words)
    for part in (stated["digest"], "What is not covered", stated["privacy"]["not_covered"][0]):
        assert part in words
    assert ("Not private" in words) == (kind in ("seeded", "no noise"))
    assert ("right at most" in words) == stated["private"]


def test_markup_in_names_of_columns_and_levels_stays_text(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path / 'b.db'}").create("homes", epsilon=3, delta=1e-6)
    account.note(f"note {facts.MARKUP}")
    text = facts.model("intervals").report(audit=facts.VERDICT, account=account).html()
    assert facts.MARKUP not in text and "<b>=" not in text and "nurse & <b>" not in text
    assert "&lt;script&gt;" in text and "nurse &amp; &lt;b&gt;" in text and "a &lt;solver&gt;" in text
    Page(text)


def test_scores_ledger_and_verdict_are_shown_if_given(tmp_path):
    address = f"sqlite:///{tmp_path / 'b.db'}#homes"
    account = Ledger(f"sqlite:///{tmp_path / 'b.db'}").create("homes", epsilon=3, delta=1e-6)
    fitted = make_private_pipeline(facts.SCHEMA, LogisticRegression(0.5, ledger=address)).fit(facts.table())
    plain = fitted.report().html()
    assert "No score was released" in plain and "No audit was given" in plain
    assert "Paid for by account homes" in plain
    whole = fitted.report(evaluation=facts.scores(), audit=facts.VERDICT, account=address).html()
    for part in ("auc", "Calibration", "No claim was refuted", "one more fit at", account.state().last.hash):
        assert part in whole, part
    assert 'class="this"' in whole  # the entry that paid for this model
    assert "No ledger" in facts.report("pipeline").html()
    bad = Findings((Finding("it", "model", "replace-one", 1.0, 0.0, 2.0, 0.0, 9, True, "t"),) * 9, 0.99)
    refuted = fitted.report(audit=bad).html()
    assert "A claim was refuted" in refuted and "All 9 findings" in refuted


def test_of_many_features_those_with_the_largest_effect_are_shown_and_the_rest_is_counted():
    stated = facts.report("wide").facts
    text = facts.report("wide").html()
    assert "Shown are 40 of 500 features" in text and len(text) < 100_000
    values = {row["name"]: abs(row["value"]) for row in stated["fits"][0]["coefficients"]}
    del values["intercept"]
    largest = sorted(values, key=values.__getitem__)[-40:]
    shown = set(re.findall(r'<th scope="row" class="?[^>]*>(x\d+)</th>|<th scope="row">(x\d+)</th>', text))
    assert {a or b for a, b in shown} == set(largest)
    fit = {**stated["fits"][0], "coefficients": stated["fits"][0]["coefficients"][:5]}
    many = {**stated, "fits": [fit | {"outcome": f"class {k}"} for k in range(90)]}
    assert "40 further outcomes are not shown" in render(coefficients(many))


class Replayed(LogisticRegression):
    """Writes down what it is given; then is given the same again, whatever its records say."""

    recorders: ClassVar[list] = []
    replayers: ClassVar[list | None] = None

    def _curator(self, records, neighbours, randomness):
        if self.replayers is None:
            self.recorders.append(Recorder(records, neighbours, randomness))
            return self.recorders[-1]
        self.replayers.append(Replayer(records, self.recorders[len(self.replayers)]))
        return self.replayers[-1]


@pytest.mark.parametrize("solver", ["auto", Newton()])
def test_over_other_records_with_the_same_releases_the_report_is_the_same_to_the_byte(solver, monkeypatch):
    def reported(seed):
        other = facts.table(seed)
        if seed:  # nothing in common but the size: records out of bounds, missing, of one class
            other["age"] = np.where(np.arange(len(other)) % 7, 1e6 * other["age"], np.nan)
            other["home"] = "rented"
        model = Replayed(epsilon=4.0, solver=solver, C=np.inf)
        return make_private_pipeline(facts.SCHEMA, model).fit(other).report()

    monkeypatch.setattr(Replayed, "recorders", [])
    first = reported(0)
    monkeypatch.setattr(Replayed, "replayers", [])
    again = reported(5)
    assert first.facts == again.facts and first.html() == again.html()
    assert first.model_card() == again.model_card() and first.registry_entry() == again.registry_entry()
    answers = (Replayed.recorders[0].answers, Replayed.replayers[0].answers)
    differ = [not np.array_equal(a.exact, b.exact) for a, b in zip(*answers, strict=True)]
    assert len(differ) > 3 and all(differ)  # the records were others in fact
    monkeypatch.setattr(Replayed, "replayers", None)
    assert reported(5).html() != first.html()  # with releases of its own it is another model


def test_the_report_of_adult_is_below_a_megabyte_and_two_seconds(tmp_path):
    adult = load_adult()
    model = LogisticRegression(epsilon=1.0, classes=[-1, 1]).fit(adult.X, adult.y)
    began = time.process_time()
    model.report(tmp_path / "report.html")
    assert time.process_time() - began < 2
    assert 10_000 < (tmp_path / "report.html").stat().st_size < 1_000_000


def test_a_report_is_saved_in_the_form_that_its_name_asks_for(tmp_path):
    found = facts.report("pipeline")
    for name, start in (("r.html", "<!doctype"), ("r.json", "{"), ("r.md", "---"), ("r.yaml", "# From")):
        assert found.save(tmp_path / name).read_text(encoding="utf-8").startswith(start)
    with pytest.raises(ValueError, match="one of"):
        found.save(tmp_path / "r.pdf")
    assert facts.report("pipeline").html() == page(found.facts) and "srcdoc" in found._repr_html_()
    assert "LogisticRegression" in repr(found)
    with pytest.raises(Exception, match="not fitted"):
        LogisticRegression().report()
