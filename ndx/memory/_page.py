"""Traces as one self-contained page for a browser, without network or files."""

import json
import re
from importlib.resources import files

__all__ = ["html_page"]

# In the order of their dependencies.
_SCRIPTS = ("model.js", "chart.js", "page.js")
_SLOT = re.compile(r"/\*\{(\w+)\}\*/")


def html_page(data):
    """Return a page that shows a trace."""
    folder = files("ndx.memory").joinpath("page")

    def read(name):
        return folder.joinpath(name).read_text(encoding="utf-8")

    parts = {
        "style": read("page.css"),
        "script": "\n".join(read(name) for name in _SCRIPTS),
        "data": script_json(data),
    }
    # One pass, because inserted text may look like a slot.
    return _SLOT.sub(lambda match: parts[match[1]], read("page.html"))


def script_json(value):
    """Return JSON that is safe inside of a <script>, whatever its strings contain.

    An HTML parser recognizes ``</script>`` and ``<!--`` there, and older JavaScript
    takes U+2028 for the end of a line; JSON can write all of these as escapes.
    """
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
