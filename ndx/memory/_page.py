"""Self-contained pages for a browser, without network or files."""

import html
import json
import re
from importlib.resources import files

__all__ = ["html_page", "live_page"]

# In the order of their dependencies.
_SCRIPTS = ("model.js", "chart.js", "page.js")
_SLOT = re.compile(r"/\*\{(\w+)\}\*/")


def html_page(data):
    """Return a page that shows a trace."""
    return _filled("page.html", {
        "title": "Memory over time",
        "script": "\n".join(map(_read, _SCRIPTS)),
        "data": script_json(data),
    })  # fmt: skip


def live_page(columns, rows, total):
    """Return a page that shows what is alive, in a table that can be sorted."""
    return _filled("live.html", {
        "title": "Memory that is alive",
        "script": _read("live.js"),
        "columns": _cells("th", columns),
        "rows": "\n".join(f"<tr>{_cells('td', row)}</tr>" for row in rows),
        "total": html.escape(total),
    })  # fmt: skip


def _cells(tag, values):
    return "".join(f"<{tag}>{html.escape(str(each))}</{tag}>" for each in values)


def _read(name):
    folder = files("ndx.memory").joinpath("page")
    return folder.joinpath(name).read_text(encoding="utf-8")


def _filled(name, parts):
    """Return a page whose slots are filled."""
    parts["style"] = _read("page.css")
    page = _read("frame.html").replace("/*{body}*/", _read(name))
    # One pass, because inserted text may look like a slot.
    return _SLOT.sub(lambda match: parts[match[1]], page)


def script_json(value):
    """Return JSON that is safe inside of a <script>, whatever its strings contain.

    An HTML parser recognizes ``</script>`` and ``<!--`` there, and older JavaScript
    takes U+2028 for the end of a line; JSON can write all of these as escapes.
    """
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
