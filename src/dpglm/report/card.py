"""A model card: Markdown with the YAML header that model hubs read, from a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from . import yaml
from .text import coefficient, meanings, number, percent, percent_up, scene, units, up

MOST_COEFFICIENTS = 20
"""So many coefficients of a fit are shown, those that can change a prediction most."""

_MARKUP = re.compile(r"([\\`*_\[\]|#])")


def model_card(stated: dict[str, Any]) -> str:
    """The Markdown text of a model card."""
    target = f" for {stated['target']}" if stated["target"] else ""
    parts = [
        "---", *yaml.lines(_header(stated)), "---", "",
        f"# {_text(stated['model'] + target)}", "",
        f"{stated['kind'].capitalize()} by {_text(stated['solver'])}, fitted to "
        f"{_text(units(stated))} with {stated['features']:,} features under "
        "differential privacy.", "",
        "## Privacy", "", f"**{_text(stated['headline'])}**", "", *_promise(stated),
        "## Releases", "",
        *_table(
            ("release", "times", "mechanism", "noise", "sensitivity", "share of the price"),
            [(line["query"], f"{line['count']:,}", line["mechanism"], number(line["noise"]),
              line["sensitivity"], percent(line["share"]) if line["share"] is not None else "")
             for line in stated["releases"]],
        ),
        *(line for fit in stated["fits"] for line in _coefficients(fit, stated["private"])),
        "## Evaluation", "", *_scores(stated),
        "## Intended use", "", "TODO: only you know.", "",
        "## Limitations", "", "The promise does not cover", "",
        *(f"- {_text(item)}" for item in stated["privacy"]["not_covered"]), "",
        "## How to use", "",
        "The model is a file of `dpglm fit`, which `dpglm predict` uses, or a fitted estimator of dpglm.", "",
        "## Facts", "",
        f"Made by {_text(stated['software'])}. SHA-256 of the statement: `{stated['digest']}`.",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _header(stated: dict[str, Any]) -> dict[str, Any]:
    task = f"tabular-{stated['kind']}"
    header: dict[str, Any] = {
        "library_name": "dpglm",
        "pipeline_tag": task,
        "tags": ["differential-privacy", "generalized-linear-models", task],
    }
    if stated["private"]:
        header["privacy"] = {name: stated["privacy"][name] for name in ("epsilon", "delta", "neighbours")}
        header["privacy"]["unit"] = stated["unit"]
    scores = stated["evaluation"]
    if scores is None:
        return header
    found = [one for one in scores["scores"] if one["determined"]]
    results = {
        "task": {"type": task},
        "dataset": {"type": "private", "name": "private records, scored with noise"},
        "metrics": [{"type": one["metric"], "value": one["value"]} for one in found],
    }
    header["metrics"] = [one["metric"] for one in found]
    if found:
        header["model-index"] = [{"name": stated["model"], "results": [results]}]
    return header


def _promise(stated: dict[str, Any]) -> list[str]:
    found = stated["measures"]
    if found is None:
        return []
    guess = percent_up(found["guess"]["right"])
    rows = [("mu (Gaussian differential privacy)", up(found["mu"]))]
    rows += [
        (f"epsilon at delta {up(one['delta'], 3)} ({one['name']})", up(one["epsilon"]))
        for one in found["epsilons"]
    ]
    if found["rho"] is not None:
        rows.append(("rho (zero-concentrated)", up(found["rho"])))
    rows += [("right guesses, from 50 %", f"at most {guess}"), ("protected unit", stated["unit"]),
             ("neighbouring tables", stated["relation"])]  # fmt: skip
    words = [
        f"{scene(stated)} Without this model a guess is right 50 % of the time, with it at most {guess}."
    ]
    words += meanings(stated)
    return [
        *(f"- {_text(one)}" for one in words if stated["private"]),
        "",
        *_table(("measure", "value"), rows),
    ]


def _coefficients(fit: dict[str, Any], private: bool) -> list[str]:
    rows = sorted(
        fit["coefficients"], key=lambda row: abs(row["value"]) * (row["range"] or 1.0), reverse=True
    )  # fmt: skip
    about = f": {_text(fit['outcome'])}" if fit["outcome"] else ""
    columns = ("feature", "coefficient", *(("from", "to") if fit["determined"] else ()))
    left = len(rows) - MOST_COEFFICIENTS
    cells = [
        (row["name"], coefficient(row["value"], fit, private), number(row["low"]),
         number(row["high"]))[: len(columns)]
        for row in rows[:MOST_COEFFICIENTS]
    ]  # fmt: skip
    more = [f"{left:,} more are not shown.", ""] if left > 0 else []
    return [f"## Coefficients{about}", "", *_table(columns, cells), *more]


def _scores(stated: dict[str, Any]) -> list[str]:
    scores = stated["evaluation"]
    if scores is None:
        return ["No score was released: a score on private records has a price.", ""]
    rows = [
        (one["metric"], number(one["value"]) if one["determined"] else "not determined", number(one["low"]),
         number(one["high"]))
        for one in scores["scores"]
    ]  # fmt: skip
    return [_text(stated["evaluation_headline"]), "", *_table(("score", "value", "from", "to"), rows)]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(map(_text, row))} |" for row in rows]
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *body, ""] if body else []


def _text(words: str) -> str:
    """Words that stay words in Markdown."""
    return " ".join(_MARKUP.sub(r"\\\1", escape(str(words), quote=False)).split())
