"""``python -m ndx``: scripts under a recording, and what is installed."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import project
from helpers.commands import call, refusal

import ndx
import ndx.__main__

ROOT = Path(ndx.__file__).parents[1]


def trace(tmp_path, source, *arguments, options=()):
    """Run a script; return the process and the spans of the arrays that it made."""
    script = tmp_path / "script.py"
    script.write_text(source)
    output = tmp_path / "out.json"
    done = call("trace", "-o", output, *options, script, *arguments, cwd=tmp_path)
    events = json.loads(output.read_text())["traceEvents"] if output.exists() else []
    return done, [e["args"] for e in events if e["ph"] == "b"]


def test_a_script(tmp_path):
    done, [array] = trace(
        tmp_path,
        "import sys, __main__\n"
        "import ndx\n"
        "def make():\n"
        "    return ndx.ones((2, 3))\n"
        "x = make()\n"
        "assert __name__ == '__main__' and __main__.__dict__ is globals()\n"
        "print(sys.argv[1:], sys.path[0], __file__)\n",
        "-o",
        "two words",
        "--output",
    )
    assert done.returncode == 0, done.stderr
    script = tmp_path / "script.py"
    assert done.stdout == f"{['-o', 'two words', '--output']} {tmp_path} {script}\n"
    assert array["maker"] == f"{script}:4 in make"
    assert array["stack"] == [f"{script}:4 in make", f"{script}:5 in <module>"]
    assert "peak 48 B in 1 arrays" in done.stderr
    assert "run --trace" not in done.stderr
    assert "saved as" in done.stderr


def test_a_program_without_arrays_of_ndx_is_told_of_numpys(tmp_path):
    done, arrays = trace(tmp_path, "import numpy; numpy.ones(1000)")
    assert done.returncode == 0, done.stderr
    assert arrays == []
    assert "ndx run --trace FILE" in done.stderr
    # Scopes are events, too: those of the array are forgotten.
    program = """
import ndx
ndx.ones(3)
with ndx.workspace("w") as scope: pass
for i in range(99):
    with scope: pass
"""
    done, arrays = trace(tmp_path, program, options=["--max-events", "16"])
    assert arrays == []
    assert "are forgotten" in done.stderr
    assert "no array" not in done.stderr


def test_a_page_is_the_default(tmp_path):
    (tmp_path / "script.py").write_text("import ndx; ndx.ones(3)")
    done = call("trace", "script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "trace.html").read_text().startswith("<!DOCTYPE html>")


def test_neighbours_are_imported(tmp_path):
    (tmp_path / "neighbour.py").write_text("import ndx\nx = ndx.ones(5)\n")
    done, [array] = trace(tmp_path, "import neighbour")
    assert done.returncode == 0, done.stderr
    assert array["nbytes"] == 40


@pytest.mark.parametrize(
    ("end", "status", "says"),
    [
        ("raise ValueError('bad')", 1, "ValueError: bad"),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('enough')", 1, "enough"),
        ("1 +", 1, "SyntaxError"),
    ],
)
def test_however_it_ends(tmp_path, end, status, says):
    source = "import ndx\nx = ndx.ones(5)\n" if end != "1 +" else ""
    done, arrays = trace(tmp_path, f"{source}{end}\n")
    assert done.returncode == status
    assert says in done.stderr
    assert len(arrays) == bool(source)
    assert (tmp_path / "out.json").exists()


def test_a_traceback_begins_with_the_script(tmp_path):
    done, _ = trace(tmp_path, "def f():\n    raise ValueError('bad')\nf()\n")
    assert "script.py" in done.stderr
    assert "_script.py" not in done.stderr
    assert "runpy" not in done.stderr


def test_interrupts_are_saved_too(tmp_path):
    done, [array] = trace(
        tmp_path, "import ndx\nx = ndx.ones(5)\nraise KeyboardInterrupt\n"
    )
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
    assert array["nbytes"] == 40


@pytest.mark.threads
def test_threads_are_waited_for(tmp_path):
    done, arrays = trace(
        tmp_path,
        "import threading, ndx\n"
        "def work():\n"
        "    threading.main_thread().join()\n"
        "    ndx.ones(5)\n"
        "threading.Thread(target=work).start()\n",
    )
    assert done.returncode == 0, done.stderr
    assert len(arrays) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
def test_a_child_saves_nothing(tmp_path):
    done, arrays = trace(
        tmp_path,
        "import os, sys, ndx\n"
        "x = ndx.ones(5)\n"
        "child = os.fork()\n"
        "if child:\n"
        "    os.waitpid(child, 0)\n"
        "    y = ndx.ones(6)\n",
    )
    assert done.returncode == 0, done.stderr
    assert len(arrays) == 2
    assert done.stderr.count("saved as") == 1


def test_a_module(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys, ndx\nx = ndx.ones(5)\nprint(__name__, sys.argv[1:])\n"
    )
    done = call("trace", "-o", "out.json", "-m", "package", "a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ ['a']\n"
    assert "package" in (tmp_path / "out.json").read_text()


def test_options(tmp_path):
    source = "import ndx\nfor _ in range(500):\n    ndx.ones(5)\n"
    options = ("--max-events", "100", "--stacks", "0")
    done, arrays = trace(tmp_path, source, options=options)
    assert done.returncode == 0, done.stderr
    assert len(arrays) <= 100
    assert "are forgotten" in done.stderr
    assert "maker" not in arrays[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "COMMAND"),
        (("trace",), "SCRIPT"),
        (("trace", "missing.py"), "can't read the script 'missing.py'"),
        (("trace", "-m", "no_such_module"), "no module named 'no_such_module'"),
        (("trace", "-o", "out.svg", "script.py"), "one of .html, .json"),
        (("trace", "--max-events", "0", "script.py"), "max_events=0"),
        (("draw",), "invalid choice"),
    ],
)
def test_what_is_wrong(tmp_path, arguments, says, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("print('ran')")
    assert says in refusal(capsys, *arguments)
    assert len(list(tmp_path.iterdir())) == 1


def test_info(tmp_path):
    done = call("info", cwd=tmp_path, NDX_HOST_LIMIT="3GiB")
    assert done.returncode == 0, done.stderr
    for text in (ndx.__version__, "array API", "NumPy".lower(), "SIMD", "3 GiB",
                 "NDX_HOST_LIMIT", "host  "):  # fmt: skip
        assert text in done.stdout


def test_info_without_optional_packages(tmp_path):
    for name in ("matplotlib", "cupy", "scipy"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not here')")
    done = call("info", cwd=tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 0, done.stderr


def test_info_does_not_import_optional_packages():
    code = (
        "import sys; from ndx._cli.info import report; report();"
        "assert not {'matplotlib', 'cupy', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=120)


def documented():
    """Yield the commands of ndx in the documentation, as lists of words."""
    for page in sorted((project.ROOT / "docs").rglob("*.md")):
        for line in page.read_text().splitlines():
            if line.startswith("$ python -m ndx "):
                yield shlex.split(line)[4:]


def test_documented_commands_are_valid():
    commands = list(documented())
    assert {words[0] for words in commands} >= {"run", "trace"}
    for words in commands:
        options = ndx.__main__._parser().parse_args(words)
        assert options.command == words[0]
        assert options.script in words
