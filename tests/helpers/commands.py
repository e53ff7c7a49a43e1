"""Programs of the command line, and code in a process of its own."""

import subprocess
import sys

import pytest


def assert_one_line_error(main, arguments, capsys):
    """Check that wrong arguments end a program with one line, and nothing else."""
    with pytest.raises(SystemExit) as caught:
        sys.exit(main(list(arguments)))
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert len(captured.err.strip().splitlines()) == 1
    assert not captured.out


def run_python(code, *arguments, **options):
    """Run code in a process of its own; return the words that it printed."""
    result = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout.split()
