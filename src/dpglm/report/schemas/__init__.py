"""Published JSON schemas (draft 2020-12) of what dpglm writes for machines."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

SCHEMAS = {"promise": "promise-1.json", "statement": "statement-2.json"}
"""Newest version of each schema, by what it describes."""


def json_schema(name: str) -> dict[str, Any]:
    """The JSON schema of what ``privacy_.to_dict()`` ("promise") or `statement` ("statement") gives.

    Examples
    --------
    >>> json_schema("promise")["properties"]["version"]
    {'const': 1}
    """
    if name not in SCHEMAS:
        raise ValueError(f"name must be one of {sorted(SCHEMAS)}, got {name!r}")
    found: dict[str, Any] = json.loads((files(__package__) / SCHEMAS[name]).read_text(encoding="utf-8"))
    return found
