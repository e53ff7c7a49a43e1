"""Results that are text of several lines."""

__all__ = ["Text", "preformatted"]


class Text(str):
    """A str that a prompt or a notebook shows verbatim, not as one escaped line."""

    __slots__ = ()

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        return preformatted(self)


def preformatted(text):
    """Return HTML that shows text verbatim, for notebooks."""
    import html

    return f'<pre style="line-height: 1.3">{html.escape(text)}</pre>'
