"""Reports are values: they survive strict JSON, and a report that lies is refused."""

import json
import math

import numpy as np
import pytest

from dpglm.audit import Finding, Report

HOLDS = Finding("it", "model", "replace-one", 1.0, 1e-6, 0.3, 0.8, 10, False, "output 0 above 1")
BROKEN = Finding("it", "transcript", "zero-out", 1.0, 0.0, math.inf, 0.0, 10, True, "output 0 above 1")
SAME = Finding("it", "replay", "zero-out", 1.0, 0.0, 0.0, 0.0, 20, False, "every replay returned the same")
REPORT = Report((HOLDS, BROKEN, SAME), 0.99)


def test_a_report_survives_strict_json():
    json.loads(REPORT.to_json(), parse_constant=pytest.fail)
    for again in (Report.from_json(REPORT.to_json()), Report.from_dict(REPORT.to_dict())):
        assert again == REPORT and str(again) == str(REPORT)


def test_findings_may_be_numpy_scalars():
    finding = Finding(
        "it", "model", "given", np.float64(1), np.float32(0), np.float64(2), 0, np.int64(9), np.True_, "x"
    )
    assert Report.from_json(Report((finding,), np.float64(0.9)).to_json()).findings == (finding,)


@pytest.mark.parametrize(
    ("field", "value"),
    [("subject", None), ("seen", ""), ("neighbours", 1), ("how", []), ("epsilon", -1), ("epsilon", math.nan),
     ("epsilon", "1"), ("delta", 1.5), ("delta", -0.1), ("delta", True), ("lower", math.nan), ("lower", -1),
     ("lower", 1.5), ("fitted", "0.8"), ("runs", -1), ("runs", 2.5), ("runs", True), ("violated", "false"),
     ("violated", 0), ("violated", True), ("ratio", 0.1), ("ratio", None), ("verdict", "VIOLATED"),
     ("verdict", 1), ("unknown", 1)],
)  # fmt: skip
def test_a_stored_finding_that_lies_is_refused(field, value):
    values = REPORT.to_dict()
    values["findings"][0][field] = value
    # What follows from a changed field is named instead where that is what contradicts it.
    with pytest.raises(ValueError, match="|".join([field, "violated", "verdict"])):
        Report.from_dict(values)


def test_a_stored_report_cannot_hide_a_violation():
    values = REPORT.to_dict()
    values["violated"] = False
    with pytest.raises(ValueError, match="violated"):
        Report.from_dict(values)
    values = REPORT.to_dict()
    values["violated"] = values["findings"][1]["violated"] = False
    values["findings"][1]["verdict"] = "holds"
    with pytest.raises(ValueError, match="violated"):
        Report.from_dict(values)


@pytest.mark.parametrize(
    ("field", "value"),
    [("confidence", 0), ("confidence", 1.1), ("confidence", math.nan), ("confidence", "0.99"),
     ("violated", "true"), ("findings", {}), ("findings", [1]), ("unknown", 1)],
)  # fmt: skip
def test_a_stored_report_that_lies_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=field.rstrip("s")):
        Report.from_dict(REPORT.to_dict() | {field: value})


@pytest.mark.parametrize("part", ["confidence", "violated", "findings"])
def test_a_stored_report_without_one_of_its_parts_is_refused(part):
    values = REPORT.to_dict()
    del values[part]
    with pytest.raises(ValueError, match=part):
        Report.from_dict(values)


def test_a_report_shows_its_table_at_a_prompt_and_in_a_notebook():
    assert repr(REPORT) == str(REPORT)
    shown = Report(
        (Finding("<b>", "model", "given", 1.0, 0.0, 0.0, 0.0, 1, False, "x"), BROKEN), 0.99
    )._repr_html_()
    assert "&lt;b&gt;" in shown and "VIOLATED" in shown and ">violated<" in shown
    assert ">holds<" in Report((HOLDS,), 0.99)._repr_html_()
