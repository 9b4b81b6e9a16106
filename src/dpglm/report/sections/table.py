"""How the table was read, what was public, what is not covered, and who says so."""

from __future__ import annotations

from typing import Any

from .. import html
from ..words import units


def read(stated: dict[str, Any]) -> str:
    """How often the table was read, and what its columns are declared to be."""
    passes = stated["passes"]
    trusted = stated["privacy"]["public"].get("trusted")
    counted = stated["privacy"].get("record_share")
    pairs = [
        ("size", units(stated)),
        *([("records that counted", str(counted))] if counted else []),
        ("features", f"{stated['features']:,}"),
        ("passes over the table", passes or "none that are counted: rows and columns of a table in memory"),
        *([("trusted besides", str(trusted))] if trusted else []),
        *([("target", stated["target"])] if stated["target"] else []),
        *([("classes", ", ".join(stated["classes"]))] if stated["classes"] else []),
    ]
    schema = stated["schema"]
    return html.facts(pairs) + (html.folded("Declared columns (schema)", html.code(schema)) if schema else "")


def public(stated: dict[str, Any]) -> str:
    """What counts as known to everybody."""
    return html.paragraph("Known to everybody, or decided before a record was read.") + html.facts(
        (name, str(value)) for name, value in stated["privacy"]["public"].items()
    )


def not_covered(stated: dict[str, Any]) -> str:
    """What the promise does not cover."""
    return html.items(stated["privacy"]["not_covered"])


def versions(stated: dict[str, Any]) -> str:
    """What the report was made with, and a hash of its facts."""
    return html.facts(
        [
            ("report by", stated["software"]),
            *stated["versions"].items(),
            ("format", f"{stated['format']}, version {stated['version']}"),
            ("SHA-256 of the facts", stated["digest"]),
        ]
    )
