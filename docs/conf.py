"""Configuration of the documentation."""

import inspect
import json
import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path

from numpydoc.docscrape import NumpyDocString
from sphinx_gallery.sorting import ExplicitOrder

import dpglm

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "dpglm"
author = "the dpglm developers"
copyright = "the dpglm developers"
version = release = dpglm.__version__

extensions = [
    "accessible",
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True  # $$ may follow a line of text
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Formulas are MathML, made by the build: readers need no network, no script and no LaTeX.
html_math_renderer = "mathml"

toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_ignore_module_all = False


def _is_value(found):
    return not (inspect.isclass(found) or inspect.isroutine(found) or hasattr(found, "__wrapped__"))


MODULES = {
    name: import_module(f"dpglm.{name}")
    for _, name, _ in pkgutil.iter_modules(dpglm.__path__)
    if name[0] != "_"
}
autosummary_context = {
    # What dpglm itself exports has its page there, and not once more with its module.
    "moved": [
        f"dpglm.{module}.{name}"
        for module in ("schema", "ledger")
        for name in MODULES[module].__all__
        if name in dpglm.__all__
    ],
    # Constants and types, which autosummary does not find where they are imported.
    "values": {
        f"dpglm.{name}": [
            value for value in getattr(module, "__all__", ()) if _is_value(getattr(module, value))
        ]
        for name, module in MODULES.items()
    },
}
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"dpglm {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["dpglm.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse for files
html_context = {
    "default_mode": "auto",
    "versions": json.loads((HERE / "versions.json").read_text(encoding="utf-8")),
}
html_theme_options = {
    "logo": {"text": "dpglm", "alt_text": "dpglm: home"},
    "navbar_align": "left",
    "navbar_end": ["versions", "theme-switcher"],
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["licence"],
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
}
html_sidebars = {"index": [], "comparison": []}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("dpglm",),
    "exclude_implicit_doc": {r"dpglm\.(accounting|kernels)\."},
    "inspect_global_variables": False,
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": ExplicitOrder(
        ["../examples/first", "../examples/models", "../examples/trust", "../examples/large"]
    ),
    "write_computation_times": False,  # that page loads scripts from elsewhere
    "reset_modules": ("matplotlib", "gallery_style.reset"),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
}

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


def _skip_what_scikit_learn_documents(app, what, name, obj, skip, options):
    inherited = str(getattr(obj, "__module__", "")).startswith("sklearn.")
    return True if inherited or re.fullmatch(r"set_\w+_request", name) else None


def setup(app):
    app.connect("autodoc-skip-member", _skip_what_scikit_learn_documents)
    app.connect("autodoc-process-docstring", _show_guarantee, priority=900)
