"""The examples of a page in Markdown: found, run, and compared with what they print.

A fence of Python is a session (``>>>``), or plain code, whose lines ``#> ...`` are what
it prints. All fences of a page share their names. A comment before a fence exempts it:
``<!-- not run: why -->``, or ``<!-- needs: torch -->`` where it is not installed (or
where there is no GPU: ``cuda``).
"""

import builtins
import contextlib
import doctest
import io
import re
import threading
from dataclasses import dataclass
from importlib.util import find_spec

import ndx
from ndx._lib.background import BackgroundThread

__all__ = ["FLAGS", "Example", "compare", "examples", "expected", "run"]

FLAGS = (
    doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
)
FENCE = re.compile(
    r"(?:<!-- (?P<mark>[^>]*) -->\n)?```python\n(?P<code>.*?)^```", re.DOTALL | re.M
)
MARKS = re.compile(r"not run: \S.*|needs: \w+")


@dataclass(frozen=True)
class Example:
    """One fence of a page."""

    name: str  # page and line
    code: str
    mark: str

    @property
    def is_session(self):
        return ">>>" in self.code

    @property
    def is_run(self):
        kind, _, name = self.mark.partition(": ")
        if kind == "needs" and name == "cuda":
            return "cuda:0" in map(str, ndx.__array_namespace_info__().devices())
        return not self.mark or (kind == "needs" and find_spec(name) is not None)


def examples(text, name):
    """Return the fences of Python of a page."""
    found = []
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        mark = match["mark"] or ""
        assert not mark or MARKS.fullmatch(mark), f"{name}:{line}: {mark}"
        found.append(Example(f"{name}:{line}", match["code"], mark))
    return found


def run(found):
    """Run a page's examples, in a thread, and so with workspaces, of their own."""
    failures = []

    def work():
        names = {"__name__": "__main__"}
        for example in found:
            if example.is_run and not failures:
                runner = _run_session if example.is_session else _run_code
                failures.extend(runner(example.code, example.name, names))
        names.clear()  # functions refer to it, and so keep the page's arrays

    before = set(threading.enumerate())
    thread = threading.Thread(target=work)
    with _workers_never_pause(found):
        thread.start()
        thread.join()
    for other in set(threading.enumerate()) - before:
        # A prefetch that was dropped ends a little later; other libraries' pools stay.
        if isinstance(other, BackgroundThread):
            other.join(10)
    assert not failures, "".join(failures)


@contextlib.contextmanager
def _workers_never_pause(found):
    """Keep dask's workers in this process at work, however much memory it has.

    The examples give them 1 GiB, and the process that runs all tests may have more
    (under sanitizers, above all). A worker would wait for it to shrink.
    """
    if not any(f.is_run and "from distributed import" in f.code for f in found):
        yield
        return
    import dask
    import distributed  # its defaults, before one of them is replaced

    assert distributed
    with dask.config.set({"distributed.worker.memory.pause": False}):
        yield


def _run_session(code, name, names):
    """Run the examples ``>>>`` of a text; return the reports of those that failed."""
    test = doctest.DocTestParser().get_doctest(code, names, name, name, 0)
    test.globs = names  # shared with the other fences
    report = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(
        test, out=report.append, clear_globs=False
    )
    builtins._ = None  # the last value that a session showed
    return report


def _run_code(code, name, names):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), names)
    except BaseException as error:  # the page's, whatever it is
        return [f"{name}: {type(error).__name__}: {error}\n{code}"]
    return compare(code, printed.getvalue(), name)


def expected(code):
    """Return what the lines ``#>`` say that code prints."""
    lines = re.findall(r"^ *#> ?(.*)$", code, re.M)
    return "".join(f"{line}\n" for line in lines)


def compare(code, printed, name):
    """Compare what code printed with its comments; return reports, empty if equal."""
    if "#>" not in code:  # it says nothing of what it prints
        return []
    if doctest.OutputChecker().check_output(expected(code), printed, FLAGS):
        return []
    return [f"{name}\nexpected:\n{expected(code)}\nprinted:\n{printed}\n"]
