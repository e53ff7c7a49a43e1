"""Sphinx's configuration; `make docs` builds the pages to ``build/docs``."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]

import ndx  # noqa: E402 - from this tree

project = "ndx"
author = "ndx developers"
copyright = author
version = release = ndx.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "api_reference",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_ext", "_templates", "**.ipynb"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["ndx.css"]

# Pages are read on a forge, too: plain Markdown, with its anchors of headings.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]

# Every reference must lead somewhere; types in docstrings are text, not references.
nitpicky = True
nitpick_ignore_regex = [("py:class|py:obj", r"(?!ndx\.(?!_)).*")]
default_role = "py:obj"  # a link where the name is known, else code

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_default_options = {
    "members": True,
    # Classes of Python, NumPy and dask, whose members are not repeated.
    "inherited-members": "object,str,tuple,Enum,BaseException,Generator,Protocol,ABC,"
    "WorkerPlugin",
    "member-order": "alphabetical",
}
autodoc_typehints = "none"  # the docstring has them, in words
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False
numpydoc_use_blockquotes = False
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "ndx"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "first_steps": [], "changelog": []}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
