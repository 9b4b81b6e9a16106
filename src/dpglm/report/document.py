"""The report of a model in all its forms, from one dictionary of facts."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .. import strict
from .card import model_card
from .page import page
from .registry import registry_entry


@dataclass(frozen=True)
class Report:
    """What can be said of a fitted model without another look at a record; ``report()`` of a model makes it.

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
        place = Path(path)
        forms = {
            ".html": self.html, ".htm": self.html, ".json": self.json, ".md": self.model_card,
            ".yaml": self.registry_entry, ".yml": self.registry_entry,
        }  # fmt: skip
        if place.suffix.lower() not in forms:
            raise ValueError(f"a report is written as one of {', '.join(forms)}, got {place.suffix!r}")
        place.write_text(forms[place.suffix.lower()](), encoding="utf-8")
        return place

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style stays its own."""
        return (
            f'<iframe title="Privacy report" style="width:100%;height:640px;border:1px solid #8888;'
            f'border-radius:8px" srcdoc="{escape(self.html())}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Report of {self.facts['model']}: {self.facts['headline']}"
