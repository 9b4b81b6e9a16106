"""What readers with a keyboard need and the theme does not have: tables that scroll can be focused."""

from __future__ import annotations

from typing import Any


def _focusable(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context:
        context["body"] = context["body"].replace('<table class="', '<table tabindex="0" class="')


def setup(app: Any) -> dict[str, bool]:
    """Change the pages when they are written."""
    app.connect("html-page-context", _focusable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
