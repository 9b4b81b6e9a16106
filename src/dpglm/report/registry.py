"""An entry for the OpenDP deployments registry, in YAML: what follows from the statement is filled in.

Fields that only people know have the value "TODO", with a comment.
"""

from __future__ import annotations

import json
from typing import Any

TODO = "TODO"


def registry_entry(stated: dict[str, Any]) -> str:
    """The YAML text of an entry, from a statement."""
    privacy = stated["privacy"]
    unit = privacy.get("unit", "record")
    releases = "; ".join(
        f"{line['count']} x {line['query']} by {line['mechanism']}, noise {line['noise']:.4g} x sensitivity "
        f"{line['sensitivity']}, {line['sampling']}"
        for line in stated["releases"]
    )
    mu = {} if stated["mu"] is None else {"mu": stated["mu"]}
    entry = {
        "url_slug": TODO,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "product": {
                "name": TODO,
                "data_curators": [TODO],
                "intended_use": TODO,
                "data_product_type": "Machine learning model",
                "data_product_region": TODO,
                "data_product_sector": TODO,
                "publication_date": TODO,
                "description": f"{stated['model']} that predicts {stated['target']!r}",
            },
            "dp_flavor": {
                "name": "Approximate DP",
                "input_metric": stated["relation"],
                "bound_on_input_distance": 1,
                "output_measure": "(epsilon, delta)",
                "bound_on_output_distance": f"epsilon {privacy['epsilon']}, delta {privacy['delta']}",
                "data_domain": f"tables of {stated['records']} {unit}s with the columns of the schema",
                "unprotected_quantities": [f"{name}: {value}" for name, value in privacy["public"].items()],
            },
            "privacy_loss": {
                "privacy_unit": "user-level" if unit == "person" else "record-level",
                "privacy_unit_description": f"one {unit}: {stated['relation']}",
                "privacy_parameters": {"epsilon": privacy["epsilon"], "delta": privacy["delta"], **mu},
                "privacy_parameters_description": stated["headline"],
            },
            "model": {
                "model_name": "Central",
                "actors": TODO,
                "release_type": TODO,
                "data_source_type": TODO,
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "coefficients, intervals and predictions are computed from the releases",
                "composition": privacy["composition"],
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": (
                    "columns are encoded by a declared schema; not covered: "
                    + "; ".join(privacy["not_covered"])
                ),
                "mechanisms": releases,
                "randomness": privacy["randomness"],
                "justification": TODO,
            },
            "resources": {"sources": TODO, "registry_authors": [TODO]},
        },
    }
    lines = [f"# From a statement of {stated['software']} with digest {stated['digest']}."]
    return "\n".join([*lines, *_yaml(entry, 0)]) + "\n"


def _yaml(value: Any, depth: int) -> list[str]:
    """Lines of nested mappings and lists; texts are quoted as in JSON, which YAML reads."""
    indent = "  " * depth
    if isinstance(value, list):
        return [f"{indent}- {_scalar(item)}" for item in value]
    lines = []
    for name, item in value.items():
        if isinstance(item, dict | list):
            lines += [f"{indent}{name}:", *_yaml(item, depth + 1)]
        else:
            lines.append(f"{indent}{name}: {_scalar(item)}")
    return lines


def _scalar(value: object) -> str:
    if value == TODO:
        return f'"{TODO}"  # only you know'
    text = json.dumps(value, ensure_ascii=False)
    # YAML takes 1e-07 for text.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text
