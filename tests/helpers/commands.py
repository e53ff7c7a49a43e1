"""Checks of programs of the command line."""

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
