"""Programs that `python -m ndx run` runs end and print as they do without it."""

import contextlib
import os
import re
import signal
import time
import zipfile
from pathlib import Path

import pytest
from helpers.commands import finish, start
from helpers.sanitizers import SANITIZED

SCRIPTS = {
    "where it is": (
        "import sys, os, __main__\n"
        "print(sys.argv, sys.path, __file__, __name__, __spec__, __package__)\n"
        "print(sorted(globals()), __main__.__dict__ is globals(), __doc__)\n"
        "print(type(__loader__).__name__, __builtins__, os.getcwd(), __loader__.path)\n"
        "print(__annotations__ if sys.version_info < (3, 14) else {})\n"
        "print(sys.modules['__main__'] is __main__, sys.flags, sys.gettrace())\n"
    ),
    "a docstring and annotations": '"""Of it."""\nx: int = 3\nprint(__doc__, x)\n',
    "an exception": (
        "def f(x):\n    return 1 / x\n"
        "try:\n    f(0)\nexcept ZeroDivisionError as e:\n"
        "    raise ValueError('bad') from e\n"
    ),
    "a group of exceptions": (
        "def f():\n    raise ExceptionGroup('two', [ValueError(1), OSError(2)])\nf()\n"
    ),
    "an exception with notes": ("e = KeyError('k')\ne.add_note('a note')\nraise e\n"),
    "an error of syntax": "x = 1\ndef f(:\n    pass\n",
    "an error of syntax in an import": "import broken\n",
    "an error of syntax in exec": "exec('1 +')\n",
    "a hook for exceptions": (
        "import sys, traceback\n"
        "def hook(kind, error, tb):\n"
        "    print(kind, error, len(traceback.extract_tb(tb)))\n"
        "    print(sys.excepthook is hook)\n"
        "    print(error.__traceback__ is tb, sys.last_value is error)\n"
        "    print(sys.last_traceback is tb)\n"
        "sys.excepthook = hook\n"
        "def f():\n    raise ValueError('bad')\n"
        "f()\n"
    ),
    "a hook that fails": (
        "import sys\n"
        "def hook(*args):\n    raise SystemExit(9)\n"
        "sys.excepthook = hook\n"
        "raise ValueError('bad')\n"
    ),
    "no hook": "import sys\ndel sys.excepthook\nraise ValueError('bad')\n",
    "the hook at exit": (
        "import atexit, sys\n"
        "atexit.register(lambda: print(sys.excepthook is sys.__excepthook__))\n"
        "raise ValueError('bad')\n"
    ),
    "exit 3": "import sys\nsys.exit(3)\n",
    "exit 0": "import sys\nsys.exit(0)\n",
    "exit None": "import sys\nsys.exit()\n",
    "exit 259": "import sys\nsys.exit(259)\n",
    "exit -1": "import sys\nsys.exit(-1)\n",
    "exit with text": "raise SystemExit('text')\n",
    "exit with an object": "raise SystemExit(['a', 2])\n",
    "exit in a finally": "import sys\ntry:\n    1 / 0\nfinally:\n    sys.exit(4)\n",
    "exit in a function at exit": (
        "import atexit\natexit.register(lambda: print('last'))\n"
        "atexit.register(lambda: 1 / 0)\nprint('first')\n"
    ),
    "quick exit": "import os\nprint('x', flush=True)\nos._exit(5)\n",
    "an interrupt": "def f():\n    raise KeyboardInterrupt\nf()\n",
    "an interrupt, at exit": (
        "import atexit\natexit.register(print, 'last')\nraise KeyboardInterrupt\n"
    ),
    "SIGINT": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n",
    "SIGTERM": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "SIGKILL": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "SIGABRT": "import os\nos.abort()\n",
    "a handler of SIGTERM": (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(11))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    ),
    "signals as Python sets them": (
        "import signal\n"
        "for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGSEGV):\n"
        "    print(each, signal.getsignal(each))\n"
    ),
    "an exception in a thread": (
        "import threading\n"
        "def work():\n    raise ValueError('in it')\n"
        "thread = threading.Thread(target=work, name='worker')\n"
        "thread.start()\nthread.join()\nprint('on')\n"
    ),
    "an exception in a thread of one's own": (
        "import threading\n"
        "class Own(threading.Thread):\n    def run(self):\n        1 / 0\n"
        "Own(name='own').start()\n"
    ),
    "a low thread": (
        "import _thread, time\n"
        "lock = _thread.allocate_lock()\nlock.acquire()\n"
        "_thread.start_new_thread(lambda: (print('there'), lock.release()), ())\n"
        "lock.acquire()\n"
    ),
    "threads that last longer": (
        "import threading, time, atexit\n"
        "atexit.register(print, 'at exit')\n"
        "def work():\n    threading.main_thread().join()\n"
        "    print('later', __name__)\n"
        "threading.Thread(target=work).start()\nprint('end')\n"
    ),
    "a finalizer at the end": (
        "class A:\n    def __del__(self):\n        print('gone', __name__)\n"
        "a = A()\nprint('end')\n"
    ),
    "an unraisable error": (
        "class A:\n    def __del__(self):\n        raise ValueError\n"
        "    def __repr__(self):\n        return 'A'\nA()\n"
    ),
    "a generator that is left": (
        "def f():\n    try:\n        yield 1\n    finally:\n        print('closed')\n"
        "g = f()\nnext(g)\n"
    ),
    "asyncio": (
        "import asyncio, contextvars\n"
        "v = contextvars.ContextVar('v', default=0)\n"
        "async def child():\n    v.set(v.get() + 1)\n    return v.get()\n"
        "async def main():\n"
        "    print(await asyncio.gather(child(), child(), asyncio.to_thread(v.get)))\n"
        "    raise ValueError('in a task')\n"
        "asyncio.run(main())\n"
    ),
    "contexts of threads are empty": (
        "import threading, contextvars, sys\n"
        "v = contextvars.ContextVar('v', default='none')\nv.set('set')\n"
        "threading.Thread(target=lambda: print(v.get())).start()\n"
    ),
    "pickles of its own classes": (
        "import pickle\n"
        "class A:\n    pass\n"
        "print(type(pickle.loads(pickle.dumps(A()))) is A, A.__module__)\n"
        "print(pickle.dumps(A))\n"
    ),
    "its own source": (
        "import inspect, linecache\n"
        "def f():\n    return 1\n"
        "print(inspect.getsource(f), inspect.getfile(f))\n"
        "print(linecache.getline(__file__, 1))\n"
    ),
    "warnings": (
        "import warnings\nwarnings.warn('careful')\n"
        "def f():\n    warnings.warn('old', DeprecationWarning, stacklevel=2)\nf()\n"
    ),
    "standard input": "print([line for line in open(0)], input)\n",
    "import of neighbours": "import neighbour\nprint(neighbour.__file__)\n",
    "a future import of its own": (
        "from __future__ import annotations\n"
        "def f(x: Unknown): pass\nprint(f.__annotations__)\n"
    ),
    "no future import of others": (
        "import sys\n"
        "if sys.version_info < (3, 14):\n"
        "    try:\n        def f(x: Unknown): pass\n"
        "    except NameError as e:\n        print(e)\n"
    ),
    "type hints": (
        "import typing, dataclasses\n"
        "@dataclasses.dataclass\nclass A:\n    x: 'A | None' = None\n"
        "print(typing.get_type_hints(A), A())\n"
    ),
    "a fork": (
        "import os, sys, atexit\n"
        "atexit.register(lambda: print('exit', flush=True))\n"
        "child = os.fork()\n"
        "if child == 0:\n    sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    ),
    "a fork that fails": (
        "import os\n"
        "child = os.fork()\n"
        "if child == 0:\n    raise ValueError('in the child')\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    ),
    "Python's tests": (
        "import unittest\n"
        "class T(unittest.TestCase):\n    def test_it(self):\n        pass\n"
        "    def test_other(self):\n        self.skipTest('not now')\n"
        "unittest.main(exit=True, argv=['x', '-q'], testRunner=type('R', (), {\n"
        "    'run': lambda self, t: (print(t.countTestCases()), t.run(r := "
        "unittest.TestResult()), print(r))[-1] or r}))\n"
    ),
    "doctests": (
        "'''Text.\n\n>>> 1 + 1\n3\n'''\nimport doctest\nprint(doctest.testmod())\n"
    ),
    "an error of NumPy's": "import numpy as np\nnp.ones(3) + np.ones(4)\n",
    "warnings of NumPy's": (
        "import numpy as np\nprint(np.ones(2) / np.zeros(2), np.log(np.zeros(1)))\n"
    ),
    "a size that is too large": ("import numpy as np\nnp.empty(2**62)\n"),
    "nothing at all": "",
}


def await_sleep(process):
    """Wait until a process sleeps at some looks; without /proc, for a moment."""
    looks, end = 0, time.monotonic() + 20
    while looks < 5 and time.monotonic() < end:
        time.sleep(0.01)
        with contextlib.suppress(FileNotFoundError):
            state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2]
            looks = 0 if state.split()[0] != "S" else looks + 1
            continue
        looks += 1


def both(arguments, cwd, said="", end=None):
    """Run a program with and without ndx; return both results."""
    processes = [
        start(*options, *arguments, cwd=cwd) for options in ((), ("-m", "ndx", "run"))
    ]
    for process in processes:
        if end is not None:
            assert process.stdout.readline() == "ready\n"
            await_sleep(process)
            process.send_signal(end)
    return [finish(process, said) for process in processes]


def assert_same(arguments, cwd, **options):
    alone, run = both(arguments, cwd, **options)
    compare(run, alone)
    return alone


def compare(run, alone):
    assert run.returncode == alone.returncode, run.stderr
    for name in ("stdout", "stderr"):
        texts = [getattr(each, name) for each in (run, alone)]
        # Addresses of objects differ each time.
        found, wanted = [re.sub("0x[0-9a-f]+", "0x", text) for text in texts]
        assert found == wanted


# Two processes for each script: those of other ways to end, by night.
BY_DAY = {
    "where it is", "an exception", "an error of syntax", "a hook for exceptions",
    "exit 3", "exit with text", "an interrupt", "SIGTERM", "threads that last longer",
    "asyncio", "pickles of its own classes", "warnings", "standard input", "a fork",
    "an error of NumPy's",
}  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="its programs use signals and forks")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in BY_DAY else pytest.mark.nightly)
        for name in sorted(SCRIPTS)
    ],
)
def test_scripts(name, tmp_path):
    if SANITIZED and name.startswith("SIG"):
        pytest.skip("sanitizers handle these signals themselves")
    (tmp_path / "broken.py").write_text("1 +\n")
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / "a script.py").write_text(SCRIPTS[name])
    # The output that a killed process leaves is that of full buffers: none.
    said = "one\ntwo\n" if name == "standard input" else ""
    assert_same(
        ["a script.py", "-o", "two words", "--", "--limit"], tmp_path, said=said
    )


@pytest.mark.parametrize(
    "way", ["./s.py", "folder/../s.py", "folder/link.py", "{}/s.py"]
)
def test_ways_to_name_a_script(way, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link.py").symlink_to(tmp_path / "s.py")
    (tmp_path / "s.py").write_text(SCRIPTS["where it is"] + "1 / 0\n")
    alone = assert_same([way.format(tmp_path)], tmp_path)
    assert "ZeroDivisionError" in alone.stderr


@pytest.fixture
def heeded(request):
    """Return a signal that children do not ignore, as they do under ``nohup``."""
    number = getattr(signal, request.param)
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
    yield number
    if before is signal.SIG_IGN:
        signal.signal(number, before)


@pytest.mark.parametrize("heeded", ["SIGINT", "SIGTERM", "SIGHUP"], indirect=True)
@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_signals_from_outside(heeded, tmp_path):
    (tmp_path / "s.py").write_text(
        "import time, atexit\natexit.register(print, 'exit')\n"
        "def wait():\n    print('ready', flush=True)\n    time.sleep(60)\nwait()\n"
    )
    alone = assert_same(["s.py"], tmp_path, end=heeded)
    assert alone.returncode == -heeded


PACKAGE = {
    "package/__init__.py": "import sys\nprint('package', sys.argv[0] == '-m')\n",
    "package/__main__.py": "from . import part\n" + SCRIPTS["where it is"] + "1 / 0\n",
    "package/part.py": "print(__name__, __package__)\n",
    "package/failing.py": "def f():\n    raise ValueError('bad')\nf()\n",
    "package/leaving.py": "import sys\nsys.exit(6)\n",
    "package/broken.py": "1 +\n",
    "package/importing.py": "import package.no_such_part\n",
    "package/stopped.py": "raise KeyboardInterrupt\n",
    "failing_package/__init__.py": "raise ValueError('bad')\n",
    "empty/__init__.py": "",
}


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    "module",
    [
        *["package", "package.failing", "package.leaving", "package.missing"],
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("package.part", "package.broken", "package.importing",
                         "package.stopped", "failing_package.x", "empty")
        ),
    ],
)  # fmt: skip
def test_modules(module, tmp_path):
    write(tmp_path, PACKAGE)
    alone = assert_same(["-m", module, "-m", "x", "--report"], tmp_path)
    assert alone.stdout or alone.stderr or alone.returncode


@pytest.mark.parametrize("kind", ["folder", "zip", "no main", "compiled"])
def test_what_is_not_a_source_file(kind, tmp_path):
    folder = tmp_path / "program"
    main = "import part\n" + SCRIPTS["where it is"] + "part.f()\n"
    write(
        tmp_path,
        {"program/part.py": "def f():\n    1 / 0\n", "program/__main__.py": main},
    )
    if kind == "no main":
        (folder / "__main__.py").unlink()
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "program.zip", "w") as file:
            for name in ("part.py", "__main__.py"):
                file.write(folder / name, name)
    if kind == "compiled":
        import py_compile

        py_compile.compile(folder / "__main__.py", folder / "main.pyc")
    path = {"zip": "program.zip", "compiled": "program/main.pyc"}.get(kind, "program")
    alone = assert_same([path, "a"], tmp_path)
    assert alone.returncode == 1


@pytest.mark.parametrize(
    "flags", [("-P",), ("-s", "-b"), ("-O", "-W", "error"), ("-B", "-u")]
)
def test_pythons_own_options(flags, tmp_path):
    (tmp_path / "s.py").write_text(
        SCRIPTS["where it is"] + "assert False\nimport warnings\nwarnings.warn('x')\n"
    )
    alone, run = [
        finish(start(*flags, *options, "s.py", cwd=tmp_path))
        for options in ((), ("-m", "ndx", "run"))
    ]
    compare(run, alone)
