"""Configuration of the documentation."""

import inspect

from numpydoc.docscrape import NumpyDocString

project = "dpglm"
author = "the dpglm developers"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_theme = "alabaster"
html_theme_options = {"description": "Differentially private generalized linear models"}

# numpydoc has no setting for sections of one's own. Known by name, "Guarantee" is read without a warning but
# not shown, so a box with its text is put in front of the examples.
NumpyDocString.sections["Guarantee"] = []


def _show_guarantee(app, what, name, obj, options, lines):
    docstring = inspect.getdoc(obj) or ""
    guarantee = NumpyDocString(docstring)["Guarantee"] if "\nGuarantee\n-" in docstring else []
    if guarantee:
        box = ["", ".. admonition:: Guarantee", "", *(f"   {line}" for line in guarantee), ""]
        place = next((k for k, line in enumerate(lines) if line == ".. rubric:: Examples"), len(lines))
        lines[place:place] = box


def setup(app):
    app.connect("autodoc-process-docstring", _show_guarantee, priority=900)
