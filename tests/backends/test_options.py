"""Options of backends: one list for each class, which signatures and errors read."""

import ast
import dataclasses
import inspect
import math
from pathlib import Path

import pytest
from helpers.examples import examples
from helpers.pools import files, host
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.backends import HostBackend, MmapBackend, PooledBackend, PythonSource
from ndx.backends._pool.options import PoolOptions
from ndx.backends._registry import BUILTIN

POOLED = [getattr(ndx.backends, kind) for _, kind in BUILTIN.values()]
KEYWORDS = {
    "CudaHostBackend": "GpuKeywords",
}


def refusal(kind, options):
    """Return the type and text of the error for options; None if they are taken."""
    try:
        kind(**options)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return None


def names_of(kind):
    return [field.name for field in dataclasses.fields(kind._options)]


@pytest.mark.parametrize("kind", [PooledBackend, *POOLED])
def test_a_signature_shows_the_options_and_their_defaults(kind):
    found = dict(inspect.signature(kind).parameters)
    if kind is PooledBackend:
        assert found.pop("source").kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert list(found) == names_of(kind)
    for field in dataclasses.fields(kind._options):
        assert found[field.name].default == field.default
        assert found[field.name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("kind", [PooledBackend, *POOLED])
def test_the_stubs_have_the_same_options(kind):
    path = Path(ndx.__file__).with_name("_typing.pyi")
    classes = {
        node.name: node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    name = KEYWORDS.get(kind.__name__, kind.__name__.replace("Backend", "Keywords"))
    # Without options of its own: those of every pool.
    name = name if name in classes else "PoolKeywords"
    found = []
    while name != "TypedDict":
        node = classes[name]
        own = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        found = [*(each.target.id for each in own), *found]
        name = node.bases[0].id
    assert found == names_of(kind)


def test_a_class_in_python_has_its_own_signature():
    class Same(HostBackend):
        pass

    class Own(HostBackend):
        def __init__(self, more):
            super().__init__()
            self.more = more

    class Source(PythonSource):
        pass

    class Pool(PooledBackend):
        def __init__(self, nbytes):
            super().__init__(Source(), limit=nbytes)

    assert inspect.signature(Same) == inspect.signature(HostBackend)
    assert list(inspect.signature(Own).parameters) == ["more"]
    assert Own(3).options == Same().options == HostBackend._options()
    assert list(inspect.signature(Pool).parameters) == ["nbytes"]
    assert Pool("1MiB").limit == 2**20


@pytest.mark.parametrize("kind", [HostBackend, MmapBackend])
def test_an_unknown_option_is_refused_with_those_that_there_are(kind):
    with pytest.raises(TypeError, match=r"no option 'limits' .*limit=.* reserve_fract"):
        kind(limits=1)
    with pytest.raises(TypeError, match=f"{kind.__name__} takes its options by name"):
        kind("1MiB")


def test_a_pool_of_a_source_says_what_it_needs():
    with pytest.raises(TypeError, match="after one source; 0 were given"):
        PooledBackend(limit=3)
    with pytest.raises(TypeError, match=r"source must be an ndx\.backends\.Source"):
        PooledBackend("host")
    with pytest.raises(TypeError, match="PooledBackend has no option 'limits'"):
        PooledBackend(PythonSource(), limits=3)
    assert PooledBackend(source=PythonSource(), limit=3).limit == 3


def test_options_print_what_differs_from_the_default(tmp_path):
    assert repr(host().options) == "HostOptions()"
    backend = host(limit="1MiB", pool="round", idle_release=None)
    assert repr(backend.options) == (
        "HostOptions(limit=1048576, pool='round', idle_release=None)"
    )
    found = files(directory=tmp_path, keep_idle="1KiB").options
    assert repr(found) == f"MmapOptions(directory={tmp_path!r}, keep_idle='1KiB')"
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.limit = 3


def test_a_percentage_is_of_what_the_source_has():
    backend = files(limit="50%")
    assert backend.options.limit == backend.limit == backend.memory_info()[1] // 2
    with pytest.raises(ValueError, match="more than all there is"):
        host(limit="101%")
    with pytest.raises(ValueError, match=r"initial=\d+ is more than limit='0%'"):
        host(limit="0%", initial="1MiB")


def test_a_fallback_is_a_backend_of_the_same_device():
    with pytest.raises(TypeError, match="fallback must be an ndx.backends.Backend"):
        HostBackend(fallback="mmap")


@examples(60)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "limit": st.sampled_from([None, 0, "4KiB", 2**20, "7%", -1, "x", 1.5]),
            "pool": st.sampled_from(["split", "round", "naive", "unpooled", "best", 3]),
            "initial": st.sampled_from([None, 0, "8KiB", 2**21, "5%", True]),
            "idle_release": st.sampled_from([None, 0, 1e300, -1, math.nan, "1"]),
            "reserve_fraction": st.sampled_from([0, 0.5, 1, -0.1, math.nan, None]),
            "cutoff": st.sampled_from([None, 11, 12, 40, 41, "20"]),
        },
    )
)
def test_options_are_refused_alone_as_in_a_backend(options):
    """What one says of bad values does not depend on who is given them."""
    reason = refusal(PoolOptions, options)
    assert refusal(HostBackend, options) == reason
    if reason is not None:
        return
    alone, backend = HostBackend._options(**options), HostBackend(**options)
    assert backend.kind == alone.pool
    assert backend.options.initial == alone.initial
    assert (backend.limit is None) == (alone.limit is None)
    if not alone.is_share:
        assert backend.options == alone
