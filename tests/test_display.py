"""The one writer of HTML: all text is escaped, and looks are classes on pages and styles in notebooks."""

from __future__ import annotations

from dpglm.display import card, element, facts, folded, paragraph, render, table

ATTACK = "<b onclick='x'>\"&"


def test_text_and_attributes_are_escaped_and_elements_nest():
    shown = render(element("p", ATTACK, [element("b", "x"), ""], kind="note", aria_label=ATTACK, tabindex=0))
    assert shown.count("&lt;b onclick=&#x27;x&#x27;&gt;&quot;&amp;") == 2
    assert shown.startswith('<p class="note" aria-label="') and shown.endswith("&amp;<b>x</b></p>")
    assert ' tabindex="0">' in shown
    assert render(element("rect", x=0.5, rx=None)) == '<rect x="0.5"/>'


def test_nothing_is_written_where_there_is_nothing_to_say():
    assert render([paragraph(""), table(("a", "b"), []), ""]) == ""


def test_notebooks_get_styles_and_no_class_and_pages_get_classes_and_no_style():
    parts = (
        facts([("name", "words")]),
        table(("a", "b"), [("x", "1")], figures=[1]),
        folded("more", "inside"),
    )
    notebook, page = card("private", False, "title", *parts), render(parts)
    assert "class=" not in notebook and notebook.count("text-align:right") == 2 and "#c62828" in notebook
    assert "style=" not in page and page.count('class="n"') == 2 and 'class="facts"' in page


def test_a_table_with_a_caption_scrolls_and_may_become_blocks_on_a_phone():
    shown = render(table(("a", "b"), [("x", "1"), ("y", "2")], caption="All", marked=[1]))
    assert shown.startswith(
        '<div class="scroll" role="region" aria-label="All" tabindex="0"><table class="stack"'
    )
    assert shown.count(' data-name="b"') == 2 and shown.count('<tr class="this"') == 1
    assert "role" not in render(table(("a",), [("x",)]))
    assert "stack" not in render(table(("a",), [("x",)], caption="All", stack=False))
