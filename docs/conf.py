"""The documentation site: Sphinx, MyST Markdown, pydata theme, tutorials by sphinx-gallery.

``make docs`` builds it into build/docs/html, with every warning an error. Why these tools:
docs/design/decisions/070-documentation-site.md.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import docstrings  # noqa: E402  (beside this file)
import figures  # noqa: E402
import mathml  # noqa: E402

import geomix  # noqa: E402

project = "geomix"
author = "The geomix developers"
copyright = "The geomix developers, BSD 3-Clause"
version = release = geomix.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "images",
    "tutorials",
    "_templates",
    "**/GALLERY_HEADER.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = False

# --- Markdown ---
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

# --- the reference ---
autodoc_typehints = "none"  # numpydoc sections carry the types
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
toc_object_entries_show_parents = "hide"
autodoc_mock_imports = [] if importlib.util.find_spec("torch") else ["torch"]
numpydoc_show_class_members = False  # autodoc lists them
add_module_names = False
python_display_short_literal_types = True

# --- tutorials: plain scripts, run while the site is built ---
# The layer for PyTorch is shown without its output where PyTorch is not installed.
NOT_RUN = "" if importlib.util.find_spec("torch") else "(?!.*torch)"
sphinx_gallery_conf = {
    "examples_dirs": ["tutorials"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": rf"/{NOT_RUN}\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_",),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib", figures.DisplayScraper()),
    "default_thumb_file": str(HERE / "_static" / "logo.png"),
    "plot_gallery": "True",
    "min_reported_time": 10_000,
    "abort_on_example_error": True,
}

# --- the look ---
html_theme = "pydata_sphinx_theme"
html_title = "geomix"
html_static_path = ["_static"]
html_css_files = ["geomix.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "geomix", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "faq": [], "glossary": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Any) -> None:
    mathml.setup(app)
    docstrings.setup(app)
