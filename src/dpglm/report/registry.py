"""An entry for the OpenDP deployments registry, in YAML: what follows from the statement is filled in.

The fields are those of the registry's public schema (opendp/deployments-registry-data, September 2026), with
its three tiers. A field that only people know holds a placeholder that the schema accepts, and a comment.
"""

from __future__ import annotations

from typing import Any

from . import yaml
from .text import number, percent_up, units, up
from .yaml import Unknown

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
    return "\n".join([*head, *yaml.lines(entry)]) + "\n"


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
    found, privacy = stated["measures"], stated["privacy"]
    rho = {} if found["rho"] is None else {"rho": found["rho"]}
    usual = ", ".join(
        f"epsilon {up(one['epsilon'])} at delta {up(one['delta'], 3)}" for one in found["epsilons"]
    )
    mu = "" if found["mu"] is None else f" mu {up(found['mu'], 6)} (Gaussian differential privacy);"
    return {
        "privacy_unit": "user-level" if stated["unit"] == "person" else f"{stated['unit']}-level",
        "privacy_unit_details": f"one {stated['unit']}: {stated['relation']}",
        "number_of_privacy_units": stated["records"],
        "privacy_parameters": {"epsilon": privacy["epsilon"], "delta": privacy["delta"], **rho},
        "privacy_parameters_details": (
            f"{stated['headline']} The same releases in other parameters:{mu} {usual}. Of two equally "
            "likely neighbouring tables, any rule names the right one at most "
            f"{percent_up(found['guess']['right'])} of the time."
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
            f"{one['metric']} {number(one['value'])} ({number(one['low'])} to {number(one['high'])})"
            for one in scores["scores"]
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
