"""The README's code and the first steps run as they stand, wherever they are pasted."""

from pathlib import Path

import pytest
from helpers import pages
from helpers.commands import finish, start

ROOT = Path(__file__).parents[1]
CELLS = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in sys.stdin.read().split("\\0"):
    shell.run_cell(cell, silent=True).raise_error()
"""


def code_of(page):
    found = pages.examples((ROOT / page).read_text(encoding="utf-8"), page)
    return [example.code for example in found if not example.is_session]


def run(command, text, folder):
    done = finish(start(*command, cwd=folder), text)
    assert "Error" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", ["README.md", "docs/first_steps.md"])
@pytest.mark.parametrize("way", ["prompt", "script", "cell"])
def test_pasted_code_prints_what_its_comments_say(page, way, tmp_path):
    codes = code_of(page)
    assert codes
    if way == "prompt":
        printed = run(["-i", "-q", "-"], "".join(codes), tmp_path)
    elif way == "script":
        (tmp_path / "script.py").write_text("".join(codes))
        printed = run(["script.py"], "", tmp_path)
    else:
        pytest.importorskip("IPython")
        printed = run(["-c", CELLS], "\0".join(codes), tmp_path)
    assert not pages.compare("".join(codes), printed, page)
