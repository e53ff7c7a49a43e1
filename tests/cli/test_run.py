"""`python -m ndx run`: NumPy's arrays counted, limited, in files, in every process."""

import json
import os
import re
import subprocess
import sys

import pytest
from helpers.commands import call, finish, run, says, start
from helpers.sanitizers import counts_pages

import ndx

POSIX = pytest.mark.skipif(os.name != "posix", reason="fork and files are POSIX")


def reported(done):
    """Return the report as a dict: of allocations, and of (peak, number) by backend."""
    found = {"all": int(re.search(r"^ndx run: (\d+) allocation", done.stderr, re.M)[1])}
    line = r"^  (\w+): peak ([\d.]+) (\w+)(?: of [^,]*)?, (\d+) allocation"
    for name, size, unit, count in re.findall(line, done.stderr, re.M):
        scale = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
        found[name] = float(size) * scale, int(count)
    return found


def test_arrays_are_counted(tmp_path):
    done = run(
        tmp_path,
        "import numpy as np\na = [np.empty(2**17) for _ in range(8)]\nprint(len(a))\n",
        "--report",
    )
    assert (done.returncode, done.stdout) == (0, "8\n")
    found = reported(done)
    assert found["all"] == found["host"][1] == 8
    # Each has a header.
    assert found["host"][0] == pytest.approx(2**23, rel=1e-3)


def test_no_report_without_the_option(tmp_path):
    assert says(run(tmp_path, "print('x')")) == "x\n"


def test_a_program_without_numpy(tmp_path):
    done = run(tmp_path, "print('x')", "--report", "--limit", "1MiB")
    assert done.stdout == "x\n"
    assert reported(done)["all"] == 0


@pytest.mark.parametrize("end", ["raise ValueError('bad')", "import sys; sys.exit(7)"])
def test_the_report_comes_however_it_ends(end, tmp_path):
    done = run(tmp_path, f"import numpy as np\na = np.empty(9)\n{end}\n", "--report")
    assert done.returncode == (7 if "exit" in end else 1)
    assert reported(done)["all"] == 1


@pytest.mark.threads
def test_the_report_comes_last(tmp_path):
    source = """
import atexit, sys, threading
import numpy as np
atexit.register(lambda: (np.empty(3), print("at exit", file=sys.stderr)))
def work():
    threading.main_thread().join()
    np.empty(3)
threading.Thread(target=work).start()
"""
    done = run(tmp_path, source, "--report")
    assert done.stderr.startswith("at exit\nndx run: 2 allocations")


def test_above_the_limit_numpy_raises_and_python_says_why(tmp_path):
    source = "import numpy as np\nprint('in')\na = np.ones(10**6)\n"
    done = run(tmp_path, source, "--limit", "1MiB")
    assert (done.returncode, done.stdout) == (1, "in\n")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("ndx.OutOfMemoryError: ")
    assert "its limit is 1 MiB" in done.stderr
    assert "direct cause" in done.stderr
    assert lines[-1].startswith("python -m ndx run: give more by --limit, or put")
    assert lines[-2] == (
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.63 MiB for an "
        "array with shape (1000000,) and data type float64"
    )
    assert "_cli" not in done.stderr


def test_a_program_may_catch_it(tmp_path):
    source = """
import numpy as np
kept = []
try:
    while True:
        kept.append(np.empty(1000, "b"))
except MemoryError as error:
    print(950 < len(kept) < 1048, "Unable to allocate" in str(error))
kept.clear()
print(np.ones(100_000).sum())
"""
    printed = says(run(tmp_path, source, "--limit", "1MiB"))
    assert printed == "True True\n100000.0\n"


# Each kind of function that makes, grows or returns arrays, on both sides of a limit.
VALUES = """
import hashlib, io, sys
import numpy as np

def show(name, x):
    data = np.ascontiguousarray(x)
    print(name, x.dtype, x.shape, hashlib.sha256(data.tobytes()).hexdigest())

kept = []
rng = np.random.default_rng(3)
for n in (10, 1000, 60_000):
    x = rng.standard_normal((n, 3))
    kept += [x, np.zeros((n, 5)), np.arange(n * 7), x[::2] + 1, x.astype("f4")]
    y = np.fromiter((i * i for i in range(n)), int)
    z = np.arange(n)
    z.resize(3 * n, refcheck=False)
    z.resize(n // 2, refcheck=False)
    lines = "\\n".join(map(str, range(n)))
    kept += [y, z, np.loadtxt(io.StringIO(lines)), np.resize(y, 2 * n)]
    kept += [np.fromstring(lines, sep="\\n"), np.linalg.svd(x[:100])[0], np.sort(x, 0)]
    kept += [np.array(["ab", "c"] * n), np.array([1, "a", None] * n, object)[::3]]
    kept += [np.unique(y % 17), np.fft.fft(x[:, 0]), np.concatenate([x, x * 2])]
    file = io.BytesIO()
    np.savez(file, x=x)
    file.seek(0)
    kept += [np.load(file)["x"], np.frombuffer(x.tobytes()), np.where(x > 0, x, 0)]
    kept += [np.ma.masked_less(x, 0).filled(1.5), np.char.upper(np.array(["q"] * n))]
for i, x in enumerate(kept):
    if x.dtype != object:
        show(i, x)
    else:
        print(i, x.tolist()[:3], x.shape)
print(np.zeros(10**6).any(), np.full(10, 3.5).tolist())
"""


@POSIX
@pytest.mark.filterwarnings("ignore")
def test_values_are_those_of_the_run_without(tmp_path):
    (tmp_path / "values.py").write_text(VALUES)
    alone = finish(start("-W", "ignore", "values.py", cwd=tmp_path))
    assert alone.returncode == 0, alone.stderr
    spilling = ("--limit", "2MiB", "--fallback", "mmap", "--directory", tmp_path)
    for options in ((), spilling):
        command = ("-W", "ignore", "-m", "ndx", "run", "--report", *options)
        done = finish(start(*command, "values.py", cwd=tmp_path))
        assert done.returncode == 0, done.stderr
        assert done.stdout == alone.stdout
    found = reported(done)
    assert found["host"][0] <= 2**21
    assert found["mmap"][0] > 2**23
    assert found["mmap"][1] > 10
    assert f"files in {tmp_path}" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["values.py"]


# The memory of the process, in bytes: NumPy's pages that nobody has touched are none.
RESIDENT = """
import numpy as np
def resident():
    with open("/proc/self/statm") as file:
        return 4096 * int(file.read().split()[1])
before = resident()
"""


@counts_pages
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("options", [(), ("--limit", "1MiB", "--fallback", "mmap")])
def test_zeros_are_lazy(options, tmp_path):
    source = RESIDENT + (
        "x = np.zeros(2**29, 'b')\n"
        "x[::2**27] = 1\n"
        "print(resident() - before < 2**25, x[::2**27].sum(), x[9:2**27].sum())\n"
    )
    assert says(run(tmp_path, source, *options)) == "True 4 0\n"


HANDLER = "from numpy._core.multiarray import get_handler_name as name\n"


@pytest.mark.threads
def test_every_thread_and_task_has_it(tmp_path):
    source = (
        HANDLER
        + """
import _thread, asyncio, contextvars, threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

names = [name()]
class Own(threading.Thread):
    def run(self):
        names.append(name())
for thread in (Own(), threading.Timer(0, lambda: names.append(name()))):
    thread.start()
    thread.join()
with ThreadPoolExecutor(1) as pool, ThreadPool(1) as other:
    names += [pool.submit(name).result(), other.apply(name)]
lock = _thread.allocate_lock()
lock.acquire()
_thread.start_new_thread(lambda: (names.append(name()), lock.release()), ())
lock.acquire()
async def task():
    return name()
async def main():
    return [await asyncio.create_task(task()), await asyncio.to_thread(name)]
names += asyncio.run(main())
names.append(contextvars.Context().run(name))
def generate():
    yield name()
names += generate()
print(len(names), set(names))
"""
    )
    assert says(run(tmp_path, source)) == "10 {'ndx_plain'}\n"


def test_a_handler_of_the_programs_own(tmp_path):
    source = (
        HANDLER
        + """
import ndx, numpy as np
with ndx.use("host", numpy=False):
    print(name())
    a = np.ones(10)
print(name(), name(a), ndx.current_backend().limit)
with ndx.use("host", limit="2MiB", numpy=True) as backend:
    b = np.ones(10)
    print(backend.stats()["allocated_count"])
del a, b
"""
    )
    printed = says(run(tmp_path, source, "--limit", "1MiB"))
    assert printed == "default_allocator\nndx_plain default_allocator 1048576\n1\n"


CHILDREN = (
    HANDLER
    + """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import ndx

at_import = np.ones(3)
class Value:
    def __init__(self, x):
        self.x = x

def work(value):
    refused = False
    try:
        a = np.ones(2**20)
    except MemoryError:
        refused = True
    stats = ndx.current_backend().stats()
    return name(at_import), name(np.ones(2)), refused, stats["limit"], value.x.sum()

def nested(value):
    with context.Pool(1) as pool:
        return pool.map(work, [value])[0]

context = multiprocessing.get_context(sys.argv[1])
if __name__ == "__main__":
    value = Value(np.arange(1000))
    with context.Pool(2) as pool:
        print(*set(pool.map(work, [value] * 3)))
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        print(pool.submit(work, value).result())
        print(pool.submit(nested, value).result())
"""
)


@POSIX
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("way", ["script", "module"])
def test_children_of_multiprocessing(method, way, tmp_path):
    (tmp_path / "children.py").write_text(CHILDREN)
    program = ("children.py",) if way == "script" else ("-m", "children")
    done = call("run", "--limit", "1MiB", *program, method, cwd=tmp_path)
    one = "('ndx_plain', 'ndx_plain', True, 1048576, 499500)\n"
    assert says(done).replace("np.int64(499500)", "499500") == 3 * one


@POSIX
def test_children_spawn_from_another_folder(tmp_path):
    """The child's path does not lead to ndx before it is told of the parent's."""
    source = CHILDREN.replace("if __name__", "import os\nos.chdir('/')\nif __name__")
    (tmp_path / "children.py").write_text(source)
    (tmp_path / "ndx").symlink_to(os.path.dirname(ndx.__file__))
    done = finish(
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ndx",
                "run",
                "--limit",
                "1MiB",
                "children.py",
                "spawn",
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    assert says(done).count("('ndx_plain', 'ndx_plain', True, 1048576, ") == 3


@POSIX
def test_children_of_joblib(tmp_path):
    pytest.importorskip("joblib")
    source = HANDLER + (
        "import joblib, ndx\n"
        "def work(i):\n    return name(), ndx.current_backend().limit\n"
        "if __name__ == '__main__':\n"
        "    found = joblib.Parallel(2)(joblib.delayed(work)(i) for i in range(4))\n"
        "    print(set(found))\n"
    )
    printed = says(run(tmp_path, source, "--limit", "16MiB"))
    assert printed == "{('ndx_plain', 16777216)}\n"


@POSIX
def test_a_forked_child_has_files_and_a_limit_of_its_own(tmp_path):
    source = """
import os, sys
import numpy as np
kept = [np.full(2**17, i) for i in range(16)]
child = os.fork()
who = "parent" if child else "child"
mine = [np.full(2**17, -i) for i in range(16)]
assert [x[-1] for x in kept + mine] == [*range(16), *range(0, -16, -1)]
kept[0][:] = child
del kept[3:9], mine[3:9]
mine += [np.zeros(2**18) for _ in range(8)]
assert not any(x.any() for x in mine[-8:])
if child:
    status = os.waitpid(child, 0)[1]
    print(status, set(kept[0].tolist()) == {child})
    os.abort() if status else None
else:
    assert set(kept[0].tolist()) == {0}
    grandchild = os.fork()
    x = np.full(2**20, 3.0)
    if not grandchild:
        os._exit(0)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
"""
    options = ("--limit", "4MiB", "--fallback", "mmap", "--directory", tmp_path)
    assert says(run(tmp_path, source, *options)) == "0 True\n"


SNAPSHOT = """
import os
import numpy as np
kept = [np.full(2**17, i) for i in range(16)]
read, write = os.pipe()

def see():
    os.read(read, 1)
    same = all((x == i).all() for i, x in enumerate(kept))
    kept[5][:] = 77
    child = os.fork()
    if not child:
        os._exit(not ((kept[5] == 77).all() and (kept[6] == 6).all()))
    os._exit(2 * (not same) + (os.waitpid(child, 0)[1] != 0))

child = os.fork() or see()
for x in kept[:8]:
    x[:] = -1
del kept[8:]
new = [np.full(2**17, 5) for _ in range(12)] + [np.zeros(2**17) for _ in range(4)]
kept[0].resize(2**18, refcheck=False)
os.write(write, b"x")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print({x[-1] for x in new} == {0, 5}, kept[0][2**17 - 1], {x[-1] for x in kept[1:]})
"""


@POSIX
def test_a_forked_child_has_the_arrays_as_they_were(tmp_path):
    options = ("--limit", "4MiB", "--fallback", "mmap", "--directory", tmp_path)
    done = run(tmp_path, SNAPSHOT, "--report", *options)
    alone = finish(start("script.py", cwd=tmp_path))
    assert (done.returncode, done.stdout) == (0, alone.stdout), done.stderr
    assert alone.stdout.startswith("0\nTrue -1 ")
    # 13 or more before the fork, and 13 after it.
    assert 24 < reported(done)["mmap"][1] < 50


def test_a_trace_of_it(tmp_path):
    source = (
        "import os, numpy as np\na = np.empty(2**17)\n"
        "os.chdir(os.path.dirname(os.path.dirname(__file__)))\n"
    )
    done = run(tmp_path, source, "--trace", "out.json", "--report", "--limit", "4MiB")
    assert done.returncode == 0, done.stderr
    assert "saved as out.json" in done.stderr
    assert reported(done)["all"] == 1
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    [array] = [event["args"] for event in events if event["ph"] == "b"]
    assert array["nbytes"] == 2**20
    assert array["maker"] == f"{tmp_path / 'script.py'}:2 in <module>"


def test_a_trace_that_can_not_be_saved(tmp_path):
    (tmp_path / "folder").mkdir()
    source = "import os, numpy as np\na = np.empty(9)\nos.rmdir('folder')\n"
    done = run(tmp_path, source, "--trace", "folder/out.json")
    assert done.returncode == 0
    assert "can't be saved: [Errno 2]" in done.stderr
