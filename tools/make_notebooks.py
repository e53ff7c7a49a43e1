"""Make the notebooks of the pages that are tutorials, or run them.

A notebook is made from its page's Markdown by jupytext, and lies beside it. It has no
outputs; the page's comments ``#>`` show them, and the tests compare them.

Usage: ``python tools/make_notebooks.py [--check | --run]``
"""

import argparse
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page
    for page in [ROOT / "docs/first_steps.md", *ROOT.glob("docs/tutorials/*.md")]
    if page.stem != "index"
)


def notebook(page):
    """Return the notebook of a page."""
    made = jupytext.reads(page.read_text(encoding="utf-8"), fmt="md")
    language = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made.metadata = nbformat.from_dict({"kernelspec": language})
    made.nbformat, made.nbformat_minor = 4, 5
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"  # the same each time
        cell.metadata = nbformat.from_dict({})
    return made


def run(page):
    """Run a page's notebook in a kernel of its own; an error in a cell raises."""
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(notebook(page), timeout=300, resources=resources)
        client.execute()


def main(arguments):
    """Write, check or run the notebooks; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="fail if one differs")
    parser.add_argument("--run", action="store_true", help="run each in a kernel")
    options = parser.parse_args(arguments)
    for page in PAGES:
        path, text = page.with_suffix(".ipynb"), nbformat.writes(notebook(page)) + "\n"
        if options.run and "needs: cuda" not in text:
            run(page)
            print(f"ran {path.relative_to(ROOT)}")
        elif options.check and (not path.exists() or path.read_text() != text):
            print(f"{path.relative_to(ROOT)} is not its page's: make notebooks")
            return 1
        elif not options.run and not options.check:
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
