"""Traces as one page for a browser, that needs nothing else: no network, no files."""

import json
import re
from importlib.resources import files

__all__ = ["html_page"]

# In the order in which they use each other.
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
    # One pass: what is put in may look like a slot.
    return _SLOT.sub(lambda match: parts[match[1]], read("page.html"))


def script_json(value):
    """Return JSON that may stand inside of a <script>, whatever its strings say.

    An HTML parser looks for ``</script>`` and ``<!--`` in there, and JavaScript once
    took U+2028 for the end of a line; in JSON all of these can be written as escapes.
    """
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
