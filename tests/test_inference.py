"""Intervals, tests and tables of coefficients against closed forms and scipy."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpglm.inference import Coefficients, Summary, conditions, intervals, two_sided, wald_test
from dpglm.privacy import Guarantee

from .pages import Page

NAMES = ("age", "hours", "intercept")
VALUES = np.array([0.5, -0.02, 3.0])
ROOT = np.array([[0.1, 0.0, 0.0], [0.002, 0.03, 0.0], [-0.2, 0.1, 0.5]])
COVARIANCE = ROOT @ ROOT.T
PRIVACY = 0.38 * COVARIANCE
FIT = Coefficients(NAMES, VALUES, COVARIANCE, PRIVACY, True, "", "the coefficients of the model.")
LOST = replace(FIT, determined=False, reason="noise exceeds the curvature of the records.")

PROMISE = Guarantee(
    epsilon=1.0, delta=1e-8, neighbours="replace-one", public={"n": 10_000},
    releases=({
        "query": "moments", "mechanism": "gaussian", "noise": 3.0, "parameters": {}, "count": 1,
        "sensitivity": "1", "sampling": "everyone", "entries": 3, "follows": False,
    },),
    composition="exact", randomness="secret", secure=True,
)  # fmt: skip


def summary(*blocks, level=0.95, **promise):
    return Summary("LogisticRegression", "Newton", 10_000, 2, blocks, replace(PROMISE, **promise), level)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_are_those_of_the_normal_law(level):
    low, high = stats.norm.interval(level, loc=VALUES, scale=FIT.standard_errors)
    assert np.allclose(
        intervals(VALUES, FIT.standard_errors, level), np.column_stack([low, high]), rtol=1e-12
    )
    assert np.array_equal(FIT.intervals(level), intervals(VALUES, FIT.standard_errors, level))


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan, "0.95", True, None])
def test_an_impossible_level_is_refused_by_name(level):
    with pytest.raises(ValueError, match="level must be strictly between 0 and 1"):
        FIT.intervals(level)
    with pytest.raises(ValueError, match="level must be strictly between 0 and 1"):
        summary(FIT, level=level)


def test_standard_errors_z_and_p_values_are_the_textbook_ones():
    errors = [0.1, math.hypot(0.002, 0.03), math.sqrt(0.04 + 0.01 + 0.25)]
    assert np.allclose(FIT.standard_errors, errors)
    assert np.allclose(FIT.z, VALUES / errors)
    assert np.allclose(FIT.p_values, 2 * stats.norm.sf(np.abs(VALUES / errors)), rtol=1e-12)
    assert np.allclose(FIT.privacy_shares, 0.38)
    assert np.allclose(two_sided(np.array([0.0, -1.959963984540054])), [1.0, 0.05])


def test_a_test_of_one_coefficient_is_the_square_of_its_z():
    for k, name in enumerate(NAMES):
        for which in (name, k, k - 3, [name], np.array([k]), np.int64(k), np.str_(name)):
            found = FIT.wald_test(which)
            assert found.statistic == pytest.approx(FIT.z[k] ** 2)
            assert found.p_value == pytest.approx(FIT.p_values[k])
            assert found.degrees_of_freedom == 1


def test_a_joint_test_is_the_chi_squared_form():
    found = FIT.wald_test(["age", "intercept"])
    chosen = [0, 2]
    expected = VALUES[chosen] @ np.linalg.inv(COVARIANCE[np.ix_(chosen, chosen)]) @ VALUES[chosen]
    assert found.statistic == pytest.approx(expected)
    assert found.degrees_of_freedom == 2
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 2))


def test_a_test_of_conditions_is_the_formula_of_wald():
    R, r = np.array([[1.0, -2.0, 0.0], [0.0, 1.0, 0.5]]), np.array([0.4, 1.0])
    gap = R @ VALUES - r
    expected = gap @ np.linalg.inv(R @ COVARIANCE @ R.T) @ gap
    found = FIT.wald_test(R, r)
    assert found.statistic == pytest.approx(expected)
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 2))
    assert found == FIT.wald_test(R.tolist(), [0.4, 1]) == FIT.wald_test([R[0], R[1]], tuple(r))
    assert found.hypothesis == "age - 2 hours = 0.4, hours + 0.5 intercept = 1"
    # A multiple of a condition is the same condition, in whatever unit it is.
    unit = np.array([[1e9], [1e-9]])
    assert FIT.wald_test(unit * R, unit[:, 0] * r).statistic == pytest.approx(expected)
    assert FIT.wald_test([[-1, 1, 0]]).hypothesis == "-age + hours = 0"


def test_a_statistic_is_chi_squared_if_the_conditions_hold():
    rng = np.random.default_rng(0)
    R = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, 1.0]])
    draws = VALUES + rng.standard_normal((4000, 3)) @ ROOT.T
    p_values = [wald_test(draw, COVARIANCE, R, R @ VALUES)[1] for draw in draws]
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_a_test_says_what_it_found():
    assert str(FIT.wald_test("age")) == "Wald test of age = 0: chi2 = 25, 1 degree of freedom, p <0.001"
    text = repr(FIT.wald_test(["hours"], 0.01))
    assert text == "Wald test of hours = 0.01: chi2 = 0.9956, 1 degree of freedom, p = 0.318"
    lost = replace(LOST, outcome="b against the rest").wald_test([0, 1])
    assert math.isnan(lost.statistic) and math.isnan(lost.p_value) and lost.degrees_of_freedom == 2
    assert str(lost) == (
        "Wald test of age = 0, hours = 0 for b against the rest: no result, the fit is not determined "
        "(2 degrees of freedom)"
    )
    wide = Coefficients(tuple("abcdefgh"), np.ones(8), np.eye(8), np.eye(8), True, "", "")
    assert wide.wald_test(list("abcdefgh")).hypothesis == "8 conditions"


@pytest.mark.parametrize(
    ("hypothesis", "message"),
    [
        ("size", "hypothesis must be among the names 'age', 'hours', 'intercept', got 'size'"),
        (3, "hypothesis must be a name, an index from 0 to 2"),
        (-4, "hypothesis must be a name, an index from 0 to 2"),
        (True, "hypothesis must be a name"),
        (None, "hypothesis must be a name"),
        (0.0, "hypothesis must be a name"),
        ([1.0, -1.0, 0.0], "hypothesis must be .* or a matrix with 3 columns"),
        ([], "at least one coefficient"),
        (["age", 0], "each of them once"),
        ([[1.0, 0.0]], "a matrix of finite numbers with 3 columns"),
        ([[1.0, 0.0], [1.0]], "a matrix of finite numbers with 3 columns"),
        ([["a", "b", "c"]], "a matrix of finite numbers with 3 columns"),
        ([[math.inf, 0.0, 0.0]], "a matrix of finite numbers with 3 columns"),
        (np.zeros((1, 2, 3)), "a matrix of finite numbers with 3 columns"),
        ([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], "none of whose rows follows from the others"),
        ([[0.0, 0.0, 0.0]], "none of whose rows follows from the others"),
        (np.vstack([np.eye(3), np.ones(3)]), "none of whose rows follows from the others"),
    ],
    ids=repr,
)
def test_an_impossible_hypothesis_is_refused(hypothesis, message):
    with pytest.raises(ValueError, match=message):
        FIT.wald_test(hypothesis)


@pytest.mark.parametrize("values", [[1.0, 2.0], "a", [math.nan], [[0.0]], ["a"]], ids=repr)
def test_values_that_do_not_fit_the_conditions_are_refused(values):
    with pytest.raises(ValueError, match="values must be one number for each condition"):
        FIT.wald_test("age", values)


def test_names_that_occur_twice_or_are_many_are_told_apart():
    names = ("intercept", "intercept")
    with pytest.raises(ValueError, match="which 2 coefficients have: give an index"):
        conditions("intercept", None, names)
    assert conditions(-1, None, names)[0].tolist() == [[0.0, 1.0]]
    with pytest.raises(ValueError, match="'x19' and 80 more, got 'y'"):
        conditions("y", None, [f"x{j}" for j in range(100)])


def test_a_singular_covariance_gives_no_result():
    flat = replace(FIT, covariance=np.ones((3, 3)))
    assert math.isnan(flat.wald_test([0, 1]).statistic)


def test_a_fit_that_is_not_determined_has_no_finite_interval():
    assert np.array_equal(LOST.intervals(0.5), np.tile([-np.inf, np.inf], (3, 1)))
    assert np.isposinf(LOST.standard_errors).all()
    assert np.isnan(LOST.z).all() and np.isnan(LOST.p_values).all() and np.isnan(LOST.privacy_shares).all()
    assert np.isnan(LOST.covariance[0, 1]) and np.isposinf(np.diagonal(LOST.privacy)).all()
    text = str(summary(LOST))
    assert "determined : NO, so there are no intervals: noise exceeds the curvature of the records." in text
    row = next(line for line in text.splitlines() if line.startswith("age"))
    assert row.split() == ["age", "0.5", "inf", "-", "-", "-", "-inf", "inf"]
    assert not summary(FIT, LOST).determined and summary(FIT).determined


def test_the_printed_table_has_the_columns_people_know():
    text = str(summary(FIT))
    lines = text.splitlines()
    assert lines[0] == "LogisticRegression by Newton: n = 10,000, p = 2"
    assert lines[2].split() == ["coef", "std", "err", "privacy", "z", "P>|z|", "[0.025", "0.975]"]
    assert lines[4].split() == ["age", "0.500", "0.100", "38", "%", "5.00", "<0.001", "0.304", "0.696"]
    assert lines[5].split() == [
        "hours",
        "-0.0200",
        "0.0301",
        "38",
        "%",
        "-0.67",
        "0.506",
        "-0.0789",
        "0.0389",
    ]
    assert len({len(line) for line in lines[1:8]}) == 1  # aligned
    assert "privacy    : epsilon = 1, delta = 1e-08, replace-one (one record replaced by any other)" in text
    assert "estimates  : the coefficients of the model." in text
    assert "determined : yes" in text and "deviance" not in text and "outcome" not in text
    assert repr(summary(FIT)) == text
    assert "[0.05  " in str(summary(FIT, level=0.9)) and "90 % intervals" in str(summary(FIT, level=0.9))
    for unpaid in ("likelihood", "AIC", "R²", "R-squared", "Chi"):
        assert unpaid not in text


def test_a_paid_deviance_is_printed_with_its_error():
    assert "deviance   : 812.3, with noise of standard error 10.5" in str(
        summary(replace(FIT, deviance=(812.345, 10.5)))
    )
    assert "deviance   : 812.3, with noise of standard error 0" in str(
        summary(replace(FIT, deviance=(812.345, 0.0)))
    )


def test_a_table_without_a_promise_says_so():
    assert "privacy    : NOT PRIVATE: the noise can be predicted." in str(summary(FIT, secure=False))
    assert "privacy    : NOT PRIVATE: epsilon is infinite" in str(summary(FIT, epsilon=math.inf, releases=()))


def test_numbers_of_any_size_are_readable():
    for scale in (1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e7, 1e20):
        fit = replace(FIT, values=scale * VALUES, covariance=scale**2 * COVARIANCE)
        row = next(line for line in str(summary(fit)).splitlines() if line.startswith("age"))
        _, coef, error, *_, low, high = row.replace(" %", "%").split()
        assert len(row) < 100
        assert float(coef) == pytest.approx(0.5 * scale, rel=1e-3)
        assert float(error) == pytest.approx(0.1 * scale, rel=1e-2)
        assert (float(low), float(high)) == pytest.approx((0.304 * scale, 0.696 * scale), rel=1e-2)
    exact = replace(FIT, covariance=0 * COVARIANCE, privacy=0 * PRIVACY)
    assert "inf" in str(summary(exact)) and "-  " in str(summary(exact))


CLASSES = (
    replace(FIT, outcome="a against the rest"),
    replace(LOST, outcome="b against the rest"),
    replace(FIT, outcome="c against the rest", values=-VALUES),
)


def test_several_classes_have_a_block_each():
    text = str(summary(*CLASSES))
    assert [line for line in text.splitlines() if line.startswith("outcome")] == [
        "outcome: a against the rest", "outcome: b against the rest", "outcome: c against the rest"
    ]  # fmt: skip
    assert text.count("estimates") == 1 and text.count("determined : yes") == 2
    assert text.count("determined : NO") == 1 and text.count("privacy    :") == 1
    own = str(summary(CLASSES[0], replace(CLASSES[2], estimand="something else.")))
    assert own.count("estimates") == 2


def test_a_summary_of_persons_names_its_estimand_in_the_header():
    """A mean over persons of means over their records: intervals of such a fit may never cover another."""
    first, second, third, *_ = str(summary(FIT, unit="person")).splitlines()
    assert first.endswith("n = 10,000 persons, p = 2")
    assert f"{second} {third}".startswith("Each person counts once: coefficients are those of a mean over")
    assert "not of a mean over records." in summary(FIT, unit="person")._repr_html_()
    assert summary(FIT, unit="person").to_dict()["unit"] == "person"
    assert "counts once" not in str(summary(FIT)) and "counts once" not in summary(FIT)._repr_html_()


def test_the_numbers_are_strict_json():
    stated = summary(*CLASSES, level=0.9).to_dict()
    assert json.loads(json.dumps(stated, allow_nan=False)) == stated
    rows = stated["coefficients"]
    assert [(row["name"], row["outcome"]) for row in rows] == [
        (name, block.outcome) for block in CLASSES for name in NAMES
    ]
    first, lost = rows[0], rows[3]
    assert first["coef"] == 0.5 and first["std_err"] == pytest.approx(0.1)
    assert first["privacy_share"] == pytest.approx(0.38) and first["z"] == pytest.approx(5)
    assert first["p_value"] == pytest.approx(2 * stats.norm.sf(5))
    assert (first["low"], first["high"]) == pytest.approx(stats.norm.interval(0.9, 0.5, 0.1))
    assert (lost["std_err"], lost["low"], lost["high"]) == ("inf", "-inf", "inf")
    assert lost["z"] is lost["p_value"] is lost["privacy_share"] is None
    assert [fit["determined"] for fit in stated["fits"]] == [True, False, True]
    assert stated["fits"][1]["reason"] == LOST.reason and stated["fits"][0]["deviance"] is None
    assert (stated["epsilon"], stated["delta"], stated["neighbours"]) == (1.0, 1e-8, "replace-one")
    assert stated["private"] is True and stated["level"] == 0.9
    assert "outcome" not in summary(FIT).to_dict()["coefficients"][0]
    assert summary(replace(FIT, deviance=(3.0, 1.0))).to_dict()["fits"][0]["deviance"] == [3.0, 1.0]


def read(shown):
    return Page(shown._repr_html_())


@pytest.mark.parametrize("blocks", [(FIT,), (LOST,), CLASSES], ids=["one", "lost", "classes"])
def test_a_notebook_shows_all_that_the_text_says(blocks):
    shown = summary(*blocks)
    page = read(shown)
    assert not page.tags & {"script", "style", "link", "img", "a", "iframe"}
    words = " ".join(page.words).split()
    text = str(shown).replace("outcome: ", "").replace(" : ", " ").split()
    assert {word for word in text if set(word) != {"-"}} <= set(words)
    assert ("not determined" in page.words) is not shown.determined
    assert page.words[0] == "private" and read(summary(*blocks, secure=False)).words[0] == "not private"


def test_names_and_labels_are_text_and_never_part_of_the_page():
    names = ("<script>alert(1)</script>", "<img src=x>", "&amp;")
    page = read(summary(replace(FIT, names=names, outcome="<b>", estimand="<i>", deviance=(1.0, 2.0))))
    assert not page.tags & {"script", "img", "i"}
    assert set(names) <= set(page.words)
