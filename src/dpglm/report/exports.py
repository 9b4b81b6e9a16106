"""The report of a model in all its forms: page, JSON, model card (Markdown), registry entry (YAML)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .. import strict
from ..display import element, render
from .page import page
from .text import (
    coefficient,
    effect,
    meanings,
    number,
    percent,
    percent_up,
    scene,
    score_cells,
    subject,
    title,
    units,
    up,
)


@dataclass(frozen=True)
class Report:
    """Everything that can be told about a fitted model without reading a record; ``model.report()`` makes it.

    A notebook shows it as its page.

    Attributes
    ----------
    facts : dict
        The statement: JSON-able values, versioned and with a digest. All forms are made from it.
    """

    facts: dict[str, Any]

    def html(self) -> str:
        """One page that needs nothing but itself."""
        return page(self.facts)

    def json(self) -> str:
        """The facts as strict JSON text; `dpglm.report.json_schema` describes it."""
        return strict.to_json(self.facts)

    def model_card(self) -> str:
        """A model card: Markdown with the YAML header that model hubs read."""
        return model_card(self.facts)

    def registry_entry(self) -> str:
        """An entry for the OpenDP deployments registry, in YAML."""
        return registry_entry(self.facts)

    def save(self, path: str | Path) -> Path:
        """Write a file: .html, .json, .md for a model card, .yaml for an entry of the registry."""
        target = Path(path)
        forms = {
            ".html": self.html, ".htm": self.html, ".json": self.json, ".md": self.model_card,
            ".yaml": self.registry_entry, ".yml": self.registry_entry,
        }  # fmt: skip
        if target.suffix.lower() not in forms:
            raise ValueError(f"a report is written as one of {', '.join(forms)}, got {target.suffix!r}")
        target.write_text(forms[target.suffix.lower()](), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style stays its own."""
        style = "width:100%;height:640px;border:1px solid #8888;border-radius:8px"
        return render(element("iframe", title="Privacy report", style=style, srcdoc=self.html()))

    def __repr__(self) -> str:
        return f"Report of {self.facts['model']}: {self.facts['headline']}"


MAX_COEFFICIENTS = 20
"""Number of coefficients shown per fit: those that can change a prediction most."""

_MARKUP = re.compile(r"([\\`*_\[\]|#])")


def model_card(stated: dict[str, Any]) -> str:
    """The Markdown text of a model card."""
    parts = [
        "---", *lines(_header(stated)), "---", "",
        f"# {_text(title(stated))}", "",
        f"{_text(subject(stated))} under differential privacy.", "",
        "## Privacy", "", f"**{_text(stated['headline'])}**", "", *_promise(stated),
        "## Releases", "",
        *_table(
            ("release", "times", "mechanism", "noise", "sensitivity", "share of the cost"),
            [(line["query"], f"{line['count']:,}", line["mechanism"], number(line["noise"]),
              line["sensitivity"], percent(line["share"]) if line["share"] is not None else "")
             for line in stated["releases"]],
        ),
        *(line for fit in stated["fits"] for line in _coefficients(fit, stated["private"])),
        "## Evaluation", "", *_scores(stated),
        "## Intended use", "", "TODO: only you know.", "",
        "## Limitations", "", "The guarantee does not cover", "",
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
    determined = [score for score in scores["scores"] if score["determined"]]
    results = {
        "task": {"type": task},
        "dataset": {"type": "private", "name": "private records, scored with noise"},
        "metrics": [{"type": score["metric"], "value": score["value"]} for score in determined],
    }
    header["metrics"] = [score["metric"] for score in determined]
    if determined:
        header["model-index"] = [{"name": stated["model"], "results": [results]}]
    return header


def _promise(stated: dict[str, Any]) -> list[str]:
    measures = stated["measures"]
    if measures is None:
        return []
    guess = percent_up(measures["guess"]["right"])
    rows = [("mu (Gaussian differential privacy)", up(measures["mu"]))]
    rows += [
        (f"epsilon at delta {up(line['delta'], 3)} ({line['name']})", up(line["epsilon"]))
        for line in measures["epsilons"]
    ]
    if measures["rho"] is not None:
        rows.append(("rho (zero-concentrated)", up(measures["rho"])))
    rows += [("right guesses, from 50 %", f"at most {guess}"), ("protected unit", stated["unit"]),
             ("neighbouring tables", stated["relation"])]  # fmt: skip
    words = [
        f"{scene(stated)} Without this model a guess is right 50 % of the time, with it at most {guess}."
    ]
    words += meanings(stated)
    return [
        *(f"- {_text(line)}" for line in words if stated["private"]),
        "",
        *_table(("measure", "value"), rows),
    ]


def _coefficients(fit: dict[str, Any], private: bool) -> list[str]:
    rows = sorted(fit["coefficients"], key=effect, reverse=True)
    about = f": {_text(fit['outcome'])}" if fit["outcome"] else ""
    columns = ("feature", "coefficient", *(("from", "to") if fit["determined"] else ()))
    omitted = len(rows) - MAX_COEFFICIENTS
    cells = [
        (row["name"], coefficient(row, fit, private), number(row["low"]),
         number(row["high"]))[: len(columns)]
        for row in rows[:MAX_COEFFICIENTS]
    ]  # fmt: skip
    more = [f"{omitted:,} more are not shown.", ""] if omitted > 0 else []
    return [f"## Coefficients{about}", "", *_table(columns, cells), *more]


def _scores(stated: dict[str, Any]) -> list[str]:
    scores = stated["evaluation"]
    if scores is None:
        return ["No score was released: a score on private records has a privacy cost.", ""]
    rows = map(score_cells, scores["scores"])
    return [_text(stated["evaluation_headline"]), "", *_table(("score", "value", "from", "to"), rows)]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(map(_text, row))} |" for row in rows]
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *body, ""] if body else []


def _text(words: str) -> str:
    """Words that stay words in Markdown."""
    return " ".join(_MARKUP.sub(r"\\\1", escape(str(words), quote=False)).split())


@dataclass(frozen=True)
class Unknown:
    """A field that only people can fill in: a placeholder that readers of the format accept, and a mark."""

    placeholder: object = "TODO"


def lines(value: object, depth: int = 0) -> list[str]:
    """The lines of a mapping or a list, indented."""
    indent = "  " * depth
    found: list[str] = []
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, dict | list):
                found += [f"{indent}{name}:", *lines(item, depth + 1)]
            else:
                found.append(f"{indent}{name}: {scalar(item)}")
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict | list):
                first, *rest = lines(item, depth + 1)
                found += [f"{indent}- {first.lstrip()}", *rest]
            else:
                found.append(f"{indent}- {scalar(item)}")
    return found


def scalar(value: object) -> str:
    """One value in one line."""
    if isinstance(value, Unknown):
        return f"{scalar(value.placeholder)}  # TODO: only you know"
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    # YAML takes 1e-07 for text.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


_UNKNOWN = Unknown()
_DATE = Unknown("1900-01-01")


def registry_entry(stated: dict[str, Any]) -> str:
    """The YAML text of an entry, from the statement of a private model."""
    if not stated["private"]:
        raise ValueError("the registry holds private deployments, and this model is not private")
    entry = {
        "url_slug": _UNKNOWN,
        "deployment": {
            "basic": _basic(stated),
            "dp_variant": _variant(stated),
            "privacy_loss": _loss(stated),
            "deployment_model": _MODEL,
            "implementation": _implementation(stated),
            "administrative": {"status": "Draft", "registry_authors": [_UNKNOWN], "tier": 3},
        },
    }
    head = [
        f"# From a statement of {stated['software']} with digest {stated['digest']}.",
        "# Lines with TODO are for you; data_product_sector can be added to basic.",
    ]
    return "\n".join([*head, *lines(entry)]) + "\n"


def _basic(stated: dict[str, Any]) -> dict[str, Any]:
    target = f" that predicts {stated['target']!r}" if stated["target"] else ""
    return {
        "name": _UNKNOWN,
        "data_curators": [{"data_curator_name": _UNKNOWN, "data_curator_type": Unknown("Industry")}],
        "description": f"{stated['model']}{target} from {stated['features']:,} features",
        "intended_use": _UNKNOWN,
        "data_product_type": "Machine learning model",
        "data_product_region": _UNKNOWN,
        "publication_date": _DATE,
    }


def _variant(stated: dict[str, Any]) -> dict[str, Any]:
    public = stated["privacy"]["public"]
    declared = "the columns of a declared schema" if stated["schema"] else "bounded features"
    return {
        "variant_name": "Approximate DP",
        "data_domain": f"tables of {units(stated)} with {declared}",
        "unprotected_quantities": "; ".join(f"{name}: {value}" for name, value in public.items()),
    }


def _loss(stated: dict[str, Any]) -> dict[str, Any]:
    measures, privacy = stated["measures"], stated["privacy"]
    rho = {} if measures["rho"] is None else {"rho": measures["rho"]}
    usual = ", ".join(
        f"epsilon {up(line['epsilon'])} at delta {up(line['delta'], 3)}" for line in measures["epsilons"]
    )
    mu = "" if measures["mu"] is None else f" mu {up(measures['mu'], 6)} (Gaussian differential privacy);"
    return {
        "privacy_unit": "user-level" if stated["unit"] == "person" else f"{stated['unit']}-level",
        "privacy_unit_details": f"one {stated['unit']}: {stated['relation']}",
        "number_of_privacy_units": stated["records"],
        "privacy_parameters": {"epsilon": privacy["epsilon"], "delta": privacy["delta"], **rho},
        "privacy_parameters_details": (
            f"{stated['headline']} The same releases in other parameters:{mu} {usual}. Of two equally "
            "likely neighbouring tables, any rule names the right one at most "
            f"{percent_up(measures['guess']['right'])} of the time."
        ),
    }


_MODEL = {
    "model_name": "Central",
    "model_name_details": "one curator holds the records; only noisy answers leave it",
    "trust_assumptions": _UNKNOWN,
    "actors": _UNKNOWN,
    "release_type": "One release",
    "release_type_details": "a fitted model is published once; a new fit is a new release with its own price",
    "data_source_type": "Static",
    "data_source_type_details": "a fit refuses a table that changes while it is read",
    "access_type": "Non-interactive",
    "access_type_details": "readers get coefficients, intervals and the report, and ask the records nothing",
}


def _implementation(stated: dict[str, Any]) -> dict[str, Any]:
    privacy, public = stated["privacy"], stated["privacy"]["public"]
    releases = "; ".join(
        f"{line['count']} x {line['query']} by {line['mechanism']}, noise {number(line['noise'])} x "
        f"sensitivity {line['sensitivity']}, {line['sampling']}"
        for line in stated["releases"]
    )
    learnt = public.get("learnt")
    scores = stated["evaluation"]
    utility: object = _UNKNOWN
    if scores is not None:
        utility = "; ".join(
            f"{score['metric']} {number(score['value'])} ({number(score['low'])} to {number(score['high'])})"
            for score in scores["scores"]
        )
    return {
        "preprocessing_and_hyperparameter_tuning": (
            "records are cut into declared bounds"
            + (f"; {learnt}, paid for in the same plan" if learnt else "")
            + f". Not covered: {'; '.join(privacy['not_covered'])}"
        ),
        "mechanisms": (
            f"{releases}. Implemented by {stated['software']}. Floating point: sums are exact integers and "
            f"noise lies on a public grid. Randomness: {privacy['randomness']}"
        ),
        "composition": privacy["composition"],
        "post_processing": "coefficients, intervals and predictions are computed from the releases",
        "justification": _UNKNOWN,
        "utility": utility,
        "additional_information": f"SHA-256 of the facts: {stated['digest']}",
    }
