"""YAML text of nested mappings and lists. Texts are quoted as in JSON, which YAML reads."""

from __future__ import annotations

import json
from dataclasses import dataclass


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
