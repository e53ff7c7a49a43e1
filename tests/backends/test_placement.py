"""Where the host's pages are, as the system says: their size, their locks, their nodes.

Limits and refusals are of processes of their own: the tests may run as root, whom no
limit on locks binds.
"""

import functools
import platform
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import finish, run_python, start
from helpers.examples import examples
from helpers.pools import check, take
from helpers.sanitizers import locks_pages
from helpers.threads import running
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.backends.host
from ndx._lib.system import huge_page_size, locked_ranges, why_not_locked
from ndx.backends import HostBackend
from ndx.testing.backends import BackendContract

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the system has other calls, or none"
)
KIB, MIB = 2**10, 2**20


def refusal(**options):
    """Return the error for options; None if they are taken."""
    try:
        HostBackend(**options)
    except (ValueError, OSError) as error:
        return error
    return None


def can_lock():
    backend = HostBackend(lock=True)
    try:
        take(backend, 256 * MIB)
    except ndx.OutOfMemoryError:
        return False
    return True


LINUX = sys.platform == "linux"
HUGE = huge_page_size()
needs_huge = pytest.mark.skipif(not HUGE, reason="the system has no huge pages")
needs_locks = pytest.mark.skipif(
    LINUX and not can_lock(), reason="the process may lock too little"
)
needs_nodes = pytest.mark.skipif(
    LINUX and refusal(numa="local") is not None,
    reason="the system has no NUMA policies",
)


def flags_at(address):
    """Return the flags that the system shows of the mapping at an address."""
    within = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):
            low, high = (int(each, 16) for each in first.split("-"))
            within = low <= address < high
        elif within and first == "VmFlags:":
            return rest
    return None


def write(array):
    array[...] = 1
    return array


# ---- options -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"hugepages": "often"}, "hugepages='often' .* auto, always, never"),
        ({"hugepages": None}, "hugepages=None"),
        ({"lock": 1}, "lock=1 is not valid; it is True or False"),
        ({"lock": "yes"}, "lock='yes'"),
        ({"numa": "near"}, "numa='near' is not valid: give the number of a node"),
        ({"numa": "0,x"}, "numa='0,x'"),
        ({"numa": ""}, "numa=''"),
        ({"numa": -1}, "numa=-1"),
        ({"numa": True}, "numa=True"),
        ({"numa": []}, r"numa=\[\]"),
        ({"numa": 0.5}, "numa=0.5"),
        ({"numa": ["0"]}, r"numa=\['0'\]"),
    ],
)
def test_bad_values_are_refused_with_the_valid_ones(options, match):
    with pytest.raises(ValueError, match=match):
        HostBackend(**options)
    with pytest.raises(ValueError, match=match):
        ndx.use("host", **options)


@needs_nodes
@pytest.mark.parametrize("numa", [1023, [0, 1023], "0,1023", 5000, 2**70])
def test_a_node_that_is_not_there_is_refused_with_those_that_are(numa):
    with pytest.raises(ValueError, match=r"a node that is not there.* nodes are \d"):
        HostBackend(numa=numa)


@needs_nodes
def test_options_are_equal_if_they_mean_the_same():
    options = HostBackend(numa=[0, 0]).options
    assert options == HostBackend(numa="0").options == HostBackend(numa=0).options
    assert options != HostBackend().options
    assert repr(options) == "HostOptions(numa=0)"
    assert repr(HostBackend(numa="local", hugepages="never").options) == (
        "HostOptions(hugepages='never', numa='local')"
    )
    kind = HostBackend._options
    assert kind(numa=[3, 1]) == kind(numa="1,3")
    assert hash(kind(numa=[3, 1])) == hash(kind(numa=(1, 3)))
    assert HostBackend(lock=True).options.changed(limit=5, fallback=None).lock


def test_a_system_without_huge_pages_says_so(monkeypatch):
    monkeypatch.setattr(ndx.backends.host, "huge_page_size", lambda: 0)
    with pytest.raises(OSError, match="no transparent huge pages.*hugepages='auto'"):
        HostBackend(hugepages="always")
    assert refusal(hugepages="auto") is refusal(hugepages="never") is None


def run(code, **environment):
    done = finish(start("-c", "import ndx\n" + code, **environment))
    return done.stdout if done.returncode == 0 else done.stderr


@needs_nodes
def test_variables_give_the_options():
    code = "print(ndx.backends.get('host').options)"
    found = run(code, NDX_HOST_LOCK="False", NDX_HOST_HUGEPAGES="Never")
    assert found == "HostOptions(hugepages='never')\n"
    found = run(code, NDX_HOST_LOCK="1", NDX_HOST_NUMA="Interleave")
    assert found == "HostOptions(lock=True, numa='interleave')\n"
    assert run(code, NDX_HOST_NUMA="0") == "HostOptions(numa=0)\n"
    assert run(code, NDX_HOST_NUMA="None") == "HostOptions()\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NDX_HOST_LOCK", "perhaps"),
        ("NDX_HOST_LOCK", "none"),
        ("NDX_HOST_HUGEPAGES", "often"),
        ("NDX_HOST_NUMA", "near"),
        ("NDX_HOST_NUMA", "1023"),
    ],
)
def test_a_bad_variable_is_named(name, value):
    assert f"in the environment, {name}={value!r}" in run("", **{name: value})


# ---- huge pages ----------------------------------------------------------------------


@needs_huge
def test_always_holds_whole_huge_pages():
    with ndx.use("host", hugepages="always", limit=8 * HUGE) as backend:
        small = write(ndx.empty(3))
        large = write(ndx.empty(2 * HUGE + 8, dtype="uint8"))
    assert backend.page_nbytes == HUGE
    assert backend.stats()["reserved_bytes"] == 4 * HUGE
    assert small.backend is backend
    for segment in backend.snapshot():
        assert segment["address"] % HUGE == segment["total_size"] % HUGE == 0
        assert "hg" in flags_at(segment["address"])
    found = backend.placement()["huge_bytes"]
    assert found is None or 0 < found <= 4 * HUGE
    check(backend)
    del large
    assert backend.trim() >= 2 * HUGE
    check(backend)
    with pytest.raises(ndx.OutOfMemoryError), ndx.use(backend):
        ndx.empty(8 * HUGE, dtype="uint8")
    assert float(small[0]) == 1


@needs_huge
def test_a_limit_below_a_huge_page_admits_nothing():
    with (
        ndx.use("host", hugepages="always", limit=HUGE - 1),
        pytest.raises(ndx.OutOfMemoryError, match=f"pages of {HUGE} bytes"),
    ):
        ndx.empty(1000)


@needs_huge
@pytest.mark.parametrize("pool", ["split", "round", "naive", "unpooled", "arena"])
def test_never_has_no_huge_page(pool):
    options = {"initial": 4 * HUGE} if pool == "arena" else {}
    with ndx.use("host", hugepages="never", pool=pool, **options) as backend:
        x = write(ndx.empty(3 * HUGE, dtype="uint8"))
    assert "nh" in flags_at(backend.snapshot()[0]["address"])
    assert backend.placement()["huge_bytes"] in (0, None)
    assert int(x[-1]) == 1


@needs_huge
def test_by_default_ranges_from_4_mib_on_may_be_in_huge_pages():
    with ndx.use("host") as backend:
        pass
    backend = HostBackend()
    with ndx.use(backend):
        large, small = ndx.empty(4 * HUGE + 4 * MIB, dtype="uint8"), ndx.ones(1000)
    address = large.__array_interface__["data"][0]
    assert "hg" in flags_at(-(-address // HUGE) * HUGE)
    assert "hg" not in flags_at(small.__array_interface__["data"][0])


# ---- locks ---------------------------------------------------------------------------


@locks_pages
@needs_locks
@pytest.mark.parametrize("pool", ["split", "round", "naive", "unpooled", "arena"])
def test_what_is_held_is_locked(pool):
    options = {"initial": "16MiB"} if pool == "arena" else {}
    with ndx.use("host", lock=True, pool=pool, **options) as backend:
        tiny, x, y = ndx.ones(2), ndx.empty(1000), ndx.empty(5 * MIB, dtype="uint8")
    held = backend.stats()["reserved_bytes"]
    found = backend.placement()
    assert tiny.backend is x.backend is backend
    assert found["locked_bytes"] == held
    # Without a write: no access waits for a page.
    assert found["node_bytes"] is None or sum(found["node_bytes"].values()) == held
    del tiny, x, y
    backend.trim()
    assert backend.stats()["reserved_bytes"] == 0
    assert backend.placement()["locked_bytes"] == 0


@locks_pages
@needs_locks
def test_what_goes_back_is_unlocked_between_live_ranges():
    backend = HostBackend(lock=True)
    parts = [take(backend, MIB) for _ in range(6)]
    for each in parts[1::2]:
        each.release()
    assert backend.trim() == 3 * MIB
    assert backend.placement()["locked_bytes"] == backend.stats()["reserved_bytes"]
    check(backend, parts[::2])
    again = take(backend, MIB)
    assert backend.placement()["locked_bytes"] == backend.stats()["reserved_bytes"]
    assert bytes(again) == bytes(MIB)


@locks_pages
@needs_locks
def test_locked_zeros_are_zeros():
    with ndx.use("host", lock=True):
        for nbytes in (KIB, 2 * MIB, 5 * MIB):
            for _ in range(3):
                x = write(ndx.empty(nbytes, dtype="uint8"))
                del x
                assert not bool(ndx.any(ndx.zeros(nbytes, dtype="uint8")))


@locks_pages
@needs_locks
def test_arenas_of_workspaces_are_locked():
    with ndx.use("host", lock=True) as backend:
        workspace = ndx.workspace("locked", size="4MiB")
        for _ in range(3):
            with workspace:
                assert float(ndx.sum(ndx.ones(100_000))) == 100_000
                found = backend.placement()["locked_bytes"]
                assert found == backend.stats()["reserved_bytes"] >= 4 * MIB
        workspace.destroy()
    backend.trim()
    assert backend.placement()["locked_bytes"] == 0


@locks_pages
@needs_locks
def test_numpys_arrays_are_locked_and_go_back():
    with ndx.use("host", lock=True, numpy=True) as backend:
        for _ in range(8):
            x = np.ones(2**27, dtype="uint8")
            assert backend.placement()["locked_bytes"] >= x.nbytes
            assert (
                backend.placement()["locked_bytes"] == backend.stats()["reserved_bytes"]
            )
            del x
    backend.trim()
    assert backend.placement()["locked_bytes"] == 0


@locks_pages
@needs_huge
@needs_locks
@pytest.mark.threads
@pytest.mark.parametrize("hugepages", ["always", "never"])
def test_threads_lock_and_unlock_at_once(hugepages):
    backend = HostBackend(lock=True, hugepages=hugepages, limit="64MiB")

    def work(number):
        for turn in range(20):
            x = take(backend, 100_000 + 500_000 * ((turn + number) % 4))
            memoryview(x)[-1:] = bytes([number])
            if turn % 3 == 0:
                backend.trim()
                backend.placement()
            assert bytes(memoryview(x)[-1:]) == bytes([number])
            x.release()

    with running(*[functools.partial(work, number) for number in range(4)]):
        pass
    check(backend)
    assert backend.placement()["locked_bytes"] == backend.stats()["reserved_bytes"]
    backend.trim()
    assert backend.placement()["locked_bytes"] == 0


# Root, too, may lock no more than the limit without this capability.
WITHOUT_RIGHTS = """
import ctypes, os, resource
import ndx
from ndx.backends import HostBackend

def bound(nbytes):
    libc = ctypes.CDLL(None, use_errno=True)
    head, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(head, sets) == 0
    for i in (0, 1):
        sets[i] &= ~(1 << 14)  # CAP_IPC_LOCK
    assert libc.capset(head, sets) == 0
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (nbytes, nbytes))

def attempt(backend, nbytes):
    try:
        with ndx.use(backend):
            return ndx.ones(nbytes, dtype="uint8")
    except ndx.OutOfMemoryError as error:
        print(error.reason, str(error).split(", and it holds")[0])

"""


def run_bound(code):
    return run_python(WITHOUT_RIGHTS + code)


@locks_pages
def test_beyond_the_limit_of_the_process_requests_are_refused():
    printed = run_bound("""
bound(4 * 2**20)
backend = HostBackend(lock=True)
kept = attempt(backend, 2**20)
before = backend.stats()
attempt(backend, 6 * 2**20)
after = backend.stats()
print(before["reserved_bytes"] == after["reserved_bytes"])
print(backend.placement()["locked_bytes"] == after["reserved_bytes"])
more = attempt(backend, 2**20)
print(int(ndx.sum(more)), int(ndx.sum(kept)))
""").splitlines()
    assert re.fullmatch(
        "system backend 'host' can't allocate 6 MiB .*: it says: lock=True, and the "
        r"process may lock 4194304 bytes of memory, of which it has locked \d+: raise "
        r"that limit \(ulimit -l\)",
        printed[0],
    )
    assert printed[1:] == ["True", "True", "1048576 1048576"]


@locks_pages
@pytest.mark.parametrize("pool", ["split", "round", "naive", "unpooled", "arena"])
def test_a_process_that_may_lock_nothing_gets_nothing(pool):
    printed = run_bound(f"""
bound(0)
options = dict(initial=2**21) if {pool!r} == "arena" else dict()
backend = HostBackend(lock=True, pool={pool!r}, **options)
attempt(backend, 2**20)
print(backend.stats()["reserved_bytes"], backend.placement()["locked_bytes"])
""").splitlines()
    assert "the process may lock 0 bytes" in printed[0]
    assert printed[1] == "0 0"


@locks_pages
def test_idle_locked_memory_and_a_fallback_help():
    assert (
        run_bound("""
bound(4 * 2**20)
backend = HostBackend(lock=True, fallback=HostBackend())
x = attempt(backend, 3 * 2**20)
del x
# What is idle is unlocked for it.
idle, y = backend.idle_nbytes >= 3 * 2**20, attempt(backend, 2**21 + 2**20 + 2**19)
z = attempt(backend, 2**22)
print(idle, y.backend is backend, z.backend is backend.fallback)
""")
        == "True True True\n"
    )


def test_a_refusal_of_the_system_says_what_it_answered(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    assert "did not lock the pages: Resource temp" in why_not_locked(11, 0, tmp_path)


@locks_pages
@needs_locks
def test_a_forked_child_has_no_locks_and_makes_its_own():
    printed = run_python("""
import os, sys
import ndx
from ndx.backends import HostBackend

backend = HostBackend(lock=True)
with ndx.use(backend):
    x = ndx.ones(2**20, dtype="uint8")
sys.stdout.flush()
child = os.fork()
if child == 0:
    inherited = backend.placement()["locked_bytes"]
    with ndx.use(backend):
        y = ndx.ones(2**21, dtype="uint8")
    own = backend.placement()["locked_bytes"]
    total = int(ndx.sum(x)) + int(ndx.sum(y))
    del x, y
    backend.trim()
    print(inherited, own >= 2**21, total, backend.stats()["reserved_bytes"], flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(backend.placement()["locked_bytes"] == backend.stats()["reserved_bytes"])
""").splitlines()
    assert printed == ["0 True 3145728 0", "True"]


@needs_locks
class TestLocked(BackendContract):
    def make(self, **options):
        return HostBackend(lock=True, **options)


# ---- nodes ---------------------------------------------------------------------------


@needs_nodes
@pytest.mark.parametrize("numa", [0, [0], "0", "interleave", "local"])
@pytest.mark.parametrize("pool", ["split", "naive"])
def test_pages_are_on_the_nodes_that_were_asked_for(numa, pool):
    with ndx.use("host", numa=numa, pool=pool) as backend:
        x, tiny = write(ndx.empty(6 * MIB, dtype="uint8")), ndx.ones(2)
    policies = Path("/proc/self/numa_maps")
    assert tiny.backend is backend
    found = backend.placement()["node_bytes"]
    assert found is None or sum(found.values()) >= x.nbytes
    if found and numa not in ("interleave", "local"):
        assert list(found) == [0]
    if policies.exists():
        address = backend.snapshot()[0]["address"]
        (line,) = (
            line for line in policies.read_text().splitlines()
            if int(line.split()[0], 16) == address
        )  # fmt: skip
        rule = {"interleave": "interleave:", "local": "local"}
        name = numa if isinstance(numa, str) else ""
        assert line.split()[1].startswith(rule.get(name, "bind:0"))


@needs_nodes
class TestInterleaved(BackendContract):
    def make(self, **options):
        return HostBackend(numa="interleave", **options)


# The numbers of mbind and get_mempolicy, by machine.
CALLS = {"x86_64": (237, 239), "aarch64": (235, 236)}
FORBID = """
import ctypes

def forbid(call):
    # A program for the kernel: EPERM for one system call, all others pass.
    def line(code, true, false, value):
        return code.to_bytes(2, "little") + bytes([true, false]) + value.to_bytes(
            4, "little")
    lines = [line(0x20, 0, 0, 0), line(0x15, 0, 1, call),
             line(0x06, 0, 0, 0x00050001), line(0x06, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(lines))
    class Program(ctypes.Structure):
        _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.c_void_p)]
    program = Program(len(lines), ctypes.addressof(code))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(program)) == 0
"""


@needs_nodes
@pytest.mark.skipif(platform.machine() not in CALLS, reason="its calls are not known")
@pytest.mark.parametrize("which", [0, 1])
def test_a_system_that_forbids_policies_says_so(which):
    printed = run_python(f"""{FORBID}
from ndx.backends import HostBackend

forbid({CALLS.get(platform.machine(), (0, 0))[which]})
for numa in (0, "local"):
    try:
        HostBackend(numa=numa)
    except OSError as error:
        print(error.errno, error)
print(HostBackend().options)
""").splitlines()
    assert len(printed) == 3
    for line in printed[:2]:
        assert line.startswith("1 [Errno 1] Operation not permitted: the system takes")
        assert "numa=None" in line
    assert printed[2] == "HostOptions()"


@needs_nodes
@pytest.mark.skipif(platform.machine() not in CALLS, reason="its calls are not known")
@pytest.mark.parametrize("pool", ["split", "naive"])
def test_a_policy_that_is_refused_later_refuses_the_request(pool):
    printed = run_python(f"""{FORBID}
import ndx
from ndx.backends import HostBackend

backend = HostBackend(numa=0, pool={pool!r})
forbid({CALLS.get(platform.machine(), (0, 0))[0]})
with ndx.use(backend):
    try:
        ndx.ones(1000)
    except ndx.OutOfMemoryError as error:
        print(str(error).split(", and it holds")[0])
print(backend.stats()["reserved_bytes"])
""").splitlines()
    assert "numa=0" in printed[0]
    assert "Operation not permitted" in printed[0]
    assert printed[1] == "0"


# ---- what the system says ------------------------------------------------------------


def test_pages_that_were_never_written_are_nowhere():
    with ndx.use("host", hugepages="never") as backend:
        x = ndx.empty(64 * MIB, dtype="uint8")
    found = backend.placement()["node_bytes"]
    assert found is None or sum(found.values()) < MIB
    write(x[: 32 * MIB])
    found = backend.placement()["node_bytes"]
    assert found is None or 32 * MIB <= sum(found.values()) < 33 * MIB


def test_a_system_that_tells_nothing(tmp_path):
    assert huge_page_size(tmp_path) == 0
    assert locked_ranges(tmp_path) is None
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/smaps").write_text("1000-2000 rw-p 0 0:0 0\nSize: 4 kB\n")
    assert locked_ranges(tmp_path) is None


def test_what_a_system_tells(tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/smaps").write_text(
        "1000-3000 rw-p 0 0:0 0\nSize: 8 kB\nVmFlags: rd wr lo \n"
        "5000-6000 r--p 0 0:0 9 /a: b\nSize: 4 kB\nVmFlags: rd \n"
    )
    assert locked_ranges(tmp_path) == [(0x1000, 0x2000)]
    folder = tmp_path / "sys/kernel/mm/transparent_hugepage"
    folder.mkdir(parents=True)
    (folder / "hpage_pmd_size").write_text("33554432\n")
    for enabled, size in (
        ("always [madvise] never", 2**25),
        ("[always] madvise never", 2**25),
        ("always madvise [never]", 0),
    ):
        (folder / "enabled").write_text(f"{enabled}\n")
        assert huge_page_size(tmp_path) == size


@locks_pages
@needs_huge
@needs_locks
@needs_nodes
@examples(25)
@given(
    options=st.fixed_dictionaries(
        {},
        optional={
            "hugepages": st.sampled_from(["auto", "always", "never"]),
            "lock": st.booleans(),
            "numa": st.sampled_from([0, "interleave", "local", None]),
            "pool": st.sampled_from(["split", "round", "naive", "unpooled"]),
        },
    ),
    steps=st.lists(
        st.one_of(
            st.integers(1, 3 * MIB),
            st.sampled_from([1, 64 * KIB, 4 * MIB, 5 * MIB + 1]),
            st.tuples(st.sampled_from(["drop", "trim"]), st.integers(0, 9)),
        ),
        max_size=12,
    ),
)
def test_books_and_contents_are_right_however_pages_are_placed(options, steps):
    backend = HostBackend(limit="96MiB", **options)
    live = []
    for step in steps:
        if isinstance(step, int):
            live.append(take(backend, step))
            memoryview(live[-1])[:1] = memoryview(live[-1])[-1:] = b"x"
        elif step[0] == "trim":
            backend.trim(idle=None if step[1] else 0)
        elif live:
            live.pop(step[1] % len(live)).release()
        check(backend, live)
        for each in live:
            assert bytes(memoryview(each)[-1:]) == b"x"
        if options.get("lock"):
            reserved = backend.stats()["reserved_bytes"]
            assert backend.placement()["locked_bytes"] == reserved
    for each in live:
        each.release()
    backend.trim()
    assert backend.stats()["reserved_bytes"] == 0
