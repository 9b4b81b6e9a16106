"""Formulas as MathML, made by the build: a page needs no script and no network to draw them.

`latex2mathml` converts; this file registers it with Sphinx, spells the few commands that it does not know,
and warns of any command that is left in the result, so that a build with warnings as errors fails.
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

LOGGER = logging.getLogger(__name__)

SPELT = (
    (re.compile(r"\\arg(?![a-zA-Z])"), r"\\operatorname{arg}"),
    (re.compile(r"\\[bB]igg?[lr]?(?=\\[lr](?:ceil|floor))"), ""),
    (re.compile(r"\\tag\{[^}]*\}"), ""),
)
"""What `latex2mathml` does not know, in its words. Tags stand beside the formula."""

TAG = re.compile(r"\\tag\{([^}]*)\}")


def to_mathml(latex: str, display: bool = False) -> str:
    """MathML of a formula."""
    for pattern, spelling in SPELT:
        latex = pattern.sub(spelling, latex)
    return convert(latex.strip(), display="block" if display else "inline")


def unknown_commands(mathml: str) -> list[str]:
    """Commands that the conversion has left as text."""
    return re.findall(r"\\[a-zA-Z]+", re.sub(r"<annotation.*?</annotation>", "", mathml, flags=re.DOTALL))


def _converted(latex: str, node: nodes.Element, display: bool) -> str:
    try:
        mathml = to_mathml(latex, display)
    except Exception as error:  # the errors of latex2mathml have no base of their own
        LOGGER.warning("formula %r: %r", latex, error, location=node)
        return f"<code>{html.escape(latex)}</code>"
    for command in unknown_commands(mathml):
        LOGGER.warning("formula with unknown command %s", command, location=node)
    return mathml


def _visit_inline(self: Any, node: nodes.math) -> None:
    self.body.append(f'<span class="math inline">{_converted(node.astext(), node, False)}</span>')
    raise nodes.SkipNode


def _visit_display(self: Any, node: nodes.math_block) -> None:
    latex = node.astext()
    found = TAG.search(latex)
    number = get_node_equation_number(self, node) if node["number"] else found[1] if found else ""
    # Spans, because a formula may stand in a paragraph; the style sheet makes them blocks.
    self.body.append(self.starttag(node, "span", "", CLASS="math display"))
    self.body.append(f'<span class="formula" tabindex="0">{_converted(latex, node, True)}</span>')
    if number:
        self.body.append(f'<span class="eqno">({number})</span>')
    self.body.append("</span>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer under the name `mathml`."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
