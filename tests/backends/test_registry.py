"""Names, options and environment variables of backends."""

import threading

import pytest
from helpers.commands import finish, start
from helpers.threads import running

import ndx
import ndx.testing.backends


def run(code, **environment):
    return finish(start("-c", code, **environment))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"NDX_HOST_LIMIT": "1MiB"}, "1048576 split"),
        ({"NDX_HOST_POOL": "round"}, "None round"),
        ({"NDX_HOST_POOL": "arena", "NDX_HOST_INITIAL": "1MiB"}, "None arena"),
        (
            {
                "NDX_BACKEND": "simulated",
                "NDX_SIMULATED_LIMIT": "50%",
                "NDX_SIMULATED_CAPACITY": "8MiB",
            },
            "4194304 split",
        ),
        ({"NDX_HOST_IDLE_RELEASE": "none", "NDX_HOST_RESERVE_FRACTION": "0.1"},
         "None split"),
    ],
)  # fmt: skip
def test_the_environment_sets_options(environment, expected):
    code = "import ndx; b = ndx.current_backend(); print(b.limit, b.kind)"
    result = run(code, **environment)
    assert (result.stdout.strip(), result.stderr) == (expected, "")


def test_the_limit_of_ndx():
    code = """
import ndx
for kind in ("host", "simulated"):
    with ndx.use(kind):
        try:
            ndx.ones(2**20)
        except ndx.OutOfMemoryError as error:
            print("the limit of ndx is 1 MiB" in str(error))
print(ndx.memory.limit())
"""
    result = run(code, NDX_LIMIT="1MiB")
    assert result.stdout.split() == ["True", "True", "1048576"]


def test_shared_and_own_instances():
    assert ndx.backends.get("host") is ndx.backends.get("host")
    assert ndx.backends.get("host", pool="naive").kind == "naive"


def test_a_fallback_serves_what_does_not_fit():
    with ndx.use("host", limit="64KiB", fallback="simulated") as backend:
        assert backend.fallback is ndx.backends.get("simulated")
        small, large = ndx.ones(100), ndx.ones(10_000)
        before = backend.fallback.stats()["allocated_bytes"]
        assert backend.stats()["allocated_bytes"] == 800
        assert before >= 80_000
        assert small.backend is backend
        assert large.backend is backend.fallback
        assert float(ndx.sum(large)) == 10_000
        del large
        assert backend.fallback.stats()["allocated_bytes"] == before - 80_000
        del small


def test_a_fallback_of_a_fallback():
    get = ndx.backends.get
    last = get("host", limit="1MiB")
    middle = get("simulated", limit="128KiB", fallback=last)
    with ndx.use("host", limit="64KiB", fallback=middle) as first:
        arrays = [ndx.full(7_000, float(i)) for i in range(6)]
        places = [x.backend for x in arrays]
        assert places == [first] + [middle] * 2 + [last] * 3
        assert [float(x[-1]) for x in arrays] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        assert (arrays[-1] + arrays[0]).backend is last
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is 64 KiB"):
            ndx.ones(1 << 18)
        del arrays, places
    for backend in (first, middle, last):
        assert backend.stats()["allocated_bytes"] == 0


def test_fallbacks_in_a_circle(monkeypatch):
    monkeypatch.setattr(ndx.backends._registry, "_shared", {})
    monkeypatch.setattr(
        ndx.backends._registry, "_options",
        {"host": {"fallback": "simulated"}, "simulated": {"fallback": "host"}},
    )  # fmt: skip
    with pytest.raises(ValueError, match="host -> simulated -> host"):
        ndx.backends.get("host")
    monkeypatch.setattr(ndx.backends._registry, "_options", {})
    assert ndx.backends.get("host").fallback is None


def test_a_fallback_that_is_full_too():
    full = ndx.backends.get("host", limit=0)
    backend = ndx.backends.get("host", limit="64KiB", fallback=full)
    with ndx.use(backend), pytest.raises(ndx.OutOfMemoryError, match="64 KiB"):
        ndx.ones(10_000)


def make_bytes(nbytes):
    return bytearray(nbytes)


def test_names_of_ndx_itself_are_not_registered_nor_unregistered():
    for name in ("host", "cuda"):
        with pytest.raises(ValueError, match=f"'{name}' is a backend of ndx itself"):
            ndx.backends.register(name, make_bytes)
        with pytest.raises(ValueError, match="one of ndx itself and can't be unreg"):
            ndx.backends.unregister(name)
    with pytest.raises(ValueError, match="'nothing' was not registered; .*: none"):
        ndx.backends.unregister("nothing")
    ndx.backends.register("twice", make_bytes)
    try:
        with pytest.raises(ValueError, match=r"backends\.unregister\('twice'\)"):
            ndx.backends.register("twice", make_bytes)
        with pytest.raises(ValueError, match="were registered: 'twice'"):
            ndx.backends.unregister("nothing")
    finally:
        ndx.backends.unregister("twice")


def test_buffers_and_adaptors_take_names():
    before = ndx.memory.allocated("host")
    buffer = ndx.backends.Buffer("host", 10)
    assert buffer.backend is ndx.backends.get("host")
    assert ndx.memory.allocated("host") == before + 10
    buffer.release()
    adaptor = ndx.memory.LimitingAdaptor("host", "1KiB")
    assert adaptor.upstream is ndx.backends.get("host")
    with ndx.use(ndx.memory.TrackingAdaptor(adaptor)) as tracking:
        x = ndx.ones(3)
        assert len(tracking.outstanding()) == 1
        del x


@pytest.mark.parametrize("make", [
    lambda backend: ndx.backends.Buffer(backend, 10),
    ndx.memory.Adaptor,
    ndx.memory.TrackingAdaptor,
    lambda backend: ndx.memory.LimitingAdaptor(backend, 10),
])  # fmt: skip
def test_what_is_no_backend_is_refused_by_buffers_and_adaptors(make):
    for wrong in (None, 10, ndx.ones(1)):
        with pytest.raises(TypeError, match="given by name or as an ndx.backends.Back"):
            make(wrong)
    with pytest.raises(ValueError, match="unknown backend 'nothing'; available are"):
        make("nothing")


def test_chains_of_adaptors_fit_on_the_stack():
    last = "host"
    for _ in range(100):
        last = ndx.memory.Adaptor(last)
    with pytest.raises(ValueError, match="a chain of 100 adaptors"):
        ndx.memory.TrackingAdaptor(last)
    with ndx.use(last):
        assert ndx.ones(3).tolist() == [1.0] * 3


def test_a_buffer_is_of_a_pool():
    adaptor = ndx.memory.Adaptor("host")
    with pytest.raises(TypeError, match="a buffer is a range of a pool, and .* has"):
        ndx.backends.Buffer(adaptor, 10)


BASES = [
    ndx.memory.Adaptor,
    ndx.memory.TrackingAdaptor,
    ndx.memory.LimitingAdaptor,
    ndx.backends.PooledBackend,
]


@pytest.mark.parametrize("base", BASES)
def test_a_constructor_that_calls_no_other_is_named(base):
    class Mine(base):
        def __init__(self):
            self.mine = True

    made = Mine()
    match = r"Mine has no (upstream|pool), since its __init__ did not call .*super\(\)"
    for use in (
        ndx.backends.get,
        ndx.use,
        ndx.set_default,
        ndx.memory.Adaptor,
        lambda backend: ndx.use("host", fallback=backend),
        lambda backend: ndx.workspace("w", backend=backend).__enter__(),
    ):
        with pytest.raises(TypeError, match=match):
            use(made)
    # What can be asked of it directly tells that there is nothing.
    assert made.stats()["allocated_bytes"] == made.trim() == 0
    assert made.largest_live() == []
    assert made.memory_info() == (None, None)
    made.reset_peak()
    made.raise_peak(made.stats())
    assert "Mine" in repr(made)
    for name in dir(made):
        getattr(made, name, None)


def test_an_adaptor_keeps_its_upstream():
    adaptor = ndx.memory.Adaptor("host")
    with pytest.raises(RuntimeError, match="has an upstream already"):
        adaptor.__init__("simulated")
    adaptor.__init__("host")
    assert adaptor.upstream is ndx.backends.get("host")


@pytest.mark.threads
def test_threads_that_ask_first_at_once_share_one_backend():
    both = threading.Barrier(2)

    def factory():
        both.wait(20)
        return ndx.testing.backends.ByteArrayBackend()

    found = []
    ndx.backends.register("slow", factory)
    try:
        get = [lambda: found.append(ndx.backends.get("slow"))] * 2
        with running(*get):
            pass
        assert found == [ndx.backends.get("slow")] * 2
    finally:
        ndx.backends.unregister("slow")
