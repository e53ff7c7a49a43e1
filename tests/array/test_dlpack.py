"""DLPack in both directions."""

import gc
import threading

import numpy as np
import pytest
from helpers import capsules, dtypes, patterns
from helpers.capsules import Exporter, consume, managed_of, name_of
from helpers.commands import run_python
from helpers.compare import assert_same
from helpers.hostile import Index
from helpers.numpy_versions import since
from hypothesis import given
from hypothesis import strategies as st

import ndx

# ---- out ---------------------------------------------------------------------


@given(st.data(), st.sampled_from(dtypes.ALL))
def test_numpy_takes_it(data, dtype):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes())))
    found = np.from_dlpack(ndx.asarray(a))
    np.testing.assert_array_equal(found, a)
    assert found.dtype == a.dtype
    assert np.shares_memory(found, a) or not a.size
    if since("arrays from DLPack are writable"):
        assert found.flags.writeable == a.flags.writeable
    copied = np.from_dlpack(ndx.asarray(a), copy=True)
    np.testing.assert_array_equal(copied, a)
    assert not np.shares_memory(copied, a)


@pytest.mark.parametrize("dtype", dtypes.ALL)
@pytest.mark.parametrize("versioned", [False, True])
def test_the_fields_of_a_capsule(dtype, versioned):
    x = ndx.asarray(np.ones((4, 6), dtype)[::2, ::3])
    capsule = x.__dlpack__(max_version=(1, 0) if versioned else None)
    assert name_of(capsule) == (b"dltensor_versioned" if versioned else b"dltensor")
    managed = managed_of(capsule)
    tensor = managed.tensor
    kinds = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}
    assert tensor.code == kinds[np.dtype(dtype).kind]
    assert tensor.bits == 8 * np.dtype(dtype).itemsize
    assert tensor.lanes == 1
    assert (tensor.device_type, tensor.device_id) == x.__dlpack_device__() == (1, 0)
    assert tensor.shape[: tensor.ndim] == [2, 2]
    assert tensor.strides[: tensor.ndim] == [12, 3]
    address = tensor.data + tensor.byte_offset
    assert address == np.asarray(x).__array_interface__["data"][0]
    if versioned:
        assert (managed.major, managed.minor) >= (1, 0)
        assert managed.flags == 0


@pytest.mark.parametrize("max_version", [None, (0, 8)])
def test_unversioned_capsules(max_version):
    assert name_of(ndx.ones(3).__dlpack__(max_version=max_version)) == b"dltensor"


@pytest.mark.parametrize("max_version", [(1, 0), (1, 1), (2, 0), (10, 3)])
def test_versioned_capsules(max_version):
    capsule = ndx.ones(3).__dlpack__(max_version=max_version)
    assert managed_of(capsule).major == 1


def test_read_only_arrays_need_a_versioned_capsule():
    x = ndx.asarray(np.frombuffer(bytes(8)))
    with pytest.raises(BufferError, match=r"read-only.*max_version"):
        x.__dlpack__()
    assert managed_of(x.__dlpack__(max_version=(1, 0))).flags == capsules.READ_ONLY
    assert name_of(x.__dlpack__(copy=True)) == b"dltensor"


REVERSED = {
    "one axis": lambda x: x[::-1],
    "last": lambda x: x[:, ::-1],
    "both": lambda x: x[::-1, ::-1],
    "with gaps": lambda x: x[::-2, 1:],
}


@pytest.mark.parametrize("how", REVERSED)
def test_consumers_who_may_not_take_negative_strides(how):
    """PyTorch ends the process. NumPy takes them, and passes None for its keywords."""
    x = REVERSED[how](ndx.asarray(np.arange(12.0).reshape(3, 4)))
    for asked in (
        {}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": False},
        {"max_version": (1, 0), "copy": False, "dl_device": (1, 0)}, {"stream": None},
    ):  # fmt: skip
        with pytest.raises(BufferError, match=r"reversed.*copy=True"):
            x.__dlpack__(**asked)
    for asked in (
        {"copy": None}, {"copy": False, "dl_device": None},
        {"copy": None, "dl_device": (1, 0)},
    ):  # fmt: skip
        tensor = managed_of(x.__dlpack__(max_version=(1, 0), **asked)).tensor
        assert min(tensor.strides[: tensor.ndim]) < 0
    copied = managed_of(x.__dlpack__(copy=True)).tensor
    assert min(copied.strides[: copied.ndim]) > 0
    found = np.from_dlpack(x)
    assert np.shares_memory(found, np.asarray(x))
    np.testing.assert_array_equal(found, np.asarray(x))
    np.testing.assert_array_equal(np.from_dlpack(x, copy=True), np.asarray(x))
    assert_same(ndx.from_dlpack(x), np.asarray(x))


def test_strides_of_axes_without_a_second_element_are_positive():
    a = np.lib.stride_tricks.as_strided(np.ones(4), (1, 2), (-8, 8))
    tensor = managed_of(ndx.asarray(a).__dlpack__()).tensor
    assert tensor.strides[: tensor.ndim] == [1, 1]


def test_copies():
    x = ndx.asarray(np.arange(12.0).reshape(3, 4).T)
    capsule = x.__dlpack__(max_version=(1, 0), copy=True)
    managed = managed_of(capsule)
    assert managed.flags == capsules.COPIED
    assert managed.tensor.data != np.asarray(x).__array_interface__["data"][0]
    shared = managed_of(x.__dlpack__(max_version=(1, 0), copy=False))
    assert shared.tensor.data == np.asarray(x).__array_interface__["data"][0]


def test_a_copy_outlives_the_workspace():
    with ndx.workspace(size="1KiB"):
        x = ndx.arange(3)
        copied = np.from_dlpack(x, copy=True)
    assert copied.tolist() == [0, 1, 2]


def test_devices():
    x = ndx.ones(3)
    assert x.__dlpack_device__() == (1, 0)
    x.__dlpack__(dl_device=(1, 0))
    x.__dlpack__(dl_device=(np.int64(1), 0))
    np.from_dlpack(x, device="cpu")
    with pytest.raises(BufferError, match=r"\(1, 0\).*\(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="streams"):
        x.__dlpack__(stream=3)


class Elsewhere:
    """Says that it lies on a device, and exports NumPy's memory."""

    def __init__(self, device):
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        return np.arange(3).__dlpack__(**kwargs)


@pytest.mark.parametrize("device", [(1, 5), (4, 0), (10, 1), (0, 0), (1, -1)])
def test_arrays_on_other_devices(device):
    with pytest.raises(BufferError, match="only the CPU"):
        ndx.from_dlpack(Elsewhere(device))


@pytest.mark.parametrize("device", [None, 1, (), (1,), (1, 0, 0), "cpu", ("a", "b")])
def test_devices_that_are_none(device):
    with pytest.raises(BufferError, match="must be two ints"):
        ndx.from_dlpack(Elsewhere(device))


def test_devices_of_other_ints():
    for device in ((np.int64(1), 0), [1, 0]):
        assert ndx.from_dlpack(Elsewhere(device)).tolist() == [0, 1, 2]


def test_strides_that_are_no_whole_elements():
    records = np.zeros(4, dtype=[("c", "c16"), ("d", "f8")])
    records["c"] = np.arange(4)
    records["d"] = -1
    x = ndx.asarray(records["c"])
    assert x.strides == (24,)
    with pytest.raises(BufferError, match="whole elements"):
        x.__dlpack__()
    assert np.from_dlpack(x, copy=True).tolist() == [0, 1, 2, 3]
    assert np.from_dlpack(x[1:2]).tolist() == [1]
    assert_same(x + 1, np.arange(1, 5).astype(complex))


@pytest.mark.parametrize("name", ["max_version", "dl_device"])
@pytest.mark.parametrize("value", [(), [], (1,), (1, 0, 0), 1, {}, (None,), ("a", "b")])
def test_pairs_that_are_none(name, value):
    with pytest.raises(TypeError, match=f"{name} must be a pair of ints"):
        ndx.ones(1).__dlpack__(**{name: value})


def test_pairs_are_read_once():
    device = [Index(1, 2), Index(0, 7)]
    version = [Index(1, 0), Index(0)]
    ndx.ones(1).__dlpack__(dl_device=device, max_version=version)
    assert {item.asked for item in device + version} == {1}


# ---- the life of a capsule ---------------------------------------------------


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_that_nobody_takes(versioned):
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        capsule = ndx.ones(3).__dlpack__(max_version=(1, 0) if versioned else None)
    assert backend.stats()["allocated_count"] == 1
    del capsule
    assert backend.stats()["allocated_count"] == 0


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_that_is_taken(versioned):
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        capsule = ndx.ones(3).__dlpack__(max_version=(1, 0) if versioned else None)
    end = consume(capsule)
    del capsule
    assert backend.stats()["allocated_count"] == 1
    end()
    assert backend.stats()["allocated_count"] == 0


@pytest.mark.threads
def test_the_deleter_may_run_in_any_thread():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        end = consume(ndx.ones(3).__dlpack__())
    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert backend.stats()["allocated_count"] == 0


def test_a_capsule_pins():
    x = ndx.ones(3)
    end = consume(x.__dlpack__())
    with pytest.raises(BufferError):
        x.close()
    end()
    x.close()


# ---- in ----------------------------------------------------------------------


@given(st.data(), st.sampled_from(dtypes.ALL), st.booleans())
def test_taking_a_tensor(data, dtype, versioned):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes())))
    exporter = Exporter(a, versioned=versioned)
    x = ndx.from_dlpack(exporter)
    assert_same(x, a)
    assert x.backend is None
    assert not exporter.deleted
    view = x[...]
    y = np.asarray(view)
    del x, view
    assert not exporter.deleted
    del y
    assert exporter.deleted == 1


@given(st.data(), st.sampled_from(dtypes.ALL))
def test_taking_numpys(data, dtype):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes()), broadcast=False))
    x = ndx.from_dlpack(a)
    assert_same(x, a)
    assert np.shares_memory(np.asarray(x), a) or not a.size
    y = ndx.from_dlpack(a, copy=True)
    assert_same(y, a)
    assert y.backend is ndx.current_backend()
    assert not np.shares_memory(np.asarray(y), a)
    assert_same(ndx.from_dlpack(a, copy=False, device="cpu"), a)


def test_what_the_exporter_is_asked():
    exporter = Exporter(np.ones(3))
    ndx.from_dlpack(exporter)
    assert exporter.asked["max_version"][0] >= 1
    exporter = Exporter(np.ones(3))
    x = ndx.from_dlpack(exporter, copy=False)
    assert exporter.asked.get("copy") in (None, False)
    x[0] = 5.0
    assert exporter.array[0] == 5.0


def test_an_exporter_from_before_versions():
    class Old(Exporter):
        def __dlpack__(self, stream=None):
            return self.capsule()

    exporter = Old(np.arange(3.0), versioned=False)
    assert_same(ndx.from_dlpack(exporter), np.arange(3.0))
    gc.collect()
    assert exporter.deleted == 1


def test_asarray_takes_tensors():
    exporter = Exporter(np.arange(3.0))
    x = ndx.asarray(exporter)
    x[0] = 7.0
    assert exporter.array[0] == 7.0
    y = ndx.asarray(exporter, copy=True)
    y[0] = 8.0
    assert exporter.array[0] == 7.0


def test_a_read_only_tensor():
    x = ndx.from_dlpack(Exporter(np.ones(3), flags=capsules.READ_ONLY))
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 2.0


def test_no_strides_mean_c_order():
    a = np.arange(6.0).reshape(2, 3)
    exporter = Exporter(a)
    exporter.managed.tensor.strides = None
    assert_same(ndx.from_dlpack(exporter), a)
    exporter = Exporter(np.zeros((2, 0, 3)))
    exporter.managed.tensor.strides = None
    assert ndx.from_dlpack(exporter).shape == (2, 0, 3)


def test_a_byte_offset():
    a = np.arange(6.0)
    exporter = Exporter(a, byte_offset=16)
    exporter.shape[0] = 4
    assert_same(ndx.from_dlpack(exporter), a[2:])


def test_no_deleter():
    x = ndx.from_dlpack(Exporter(np.ones(3), deleter=False))
    del x


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"device_type": 4}, "device"),
        ({"bits": 8}, "dtype"),
        ({"lanes": 4}, "lanes"),
        ({"code": 4}, "dtype"),
        ({"code": 17}, "dtype"),
        ({"bits": 128}, "dtype"),
        ({"ndim": 100}, "axes"),
        ({"ndim": -1}, "axes"),
        ({"byte_offset": 4}, "aligned"),
    ],
)
@pytest.mark.parametrize("versioned", [False, True])
def test_tensors_that_cannot_be_taken(fields, match, versioned):
    exporter = Exporter(np.ones(3), versioned=versioned, **fields)
    with pytest.raises(BufferError, match=match):
        ndx.from_dlpack(exporter)
    # It is given back, unless it never was taken.
    gc.collect()
    assert exporter.deleted == ("device_type" not in fields)


def test_a_negative_length():
    exporter = Exporter(np.ones(3))
    exporter.shape[0] = -3
    with pytest.raises(ValueError, match="negative"):
        ndx.from_dlpack(exporter)
    gc.collect()
    assert exporter.deleted == 1


def test_a_later_version():
    exporter = Exporter(np.ones(3), major=2)
    with pytest.raises(BufferError, match="version 2"):
        ndx.from_dlpack(exporter)


def test_a_capsule_is_taken_once():
    exporter = Exporter(np.ones(3))
    capsule = exporter.capsule()

    class Once(Exporter):
        def __dlpack__(self, **kwargs):
            return capsule

    once = Once(np.ones(3))
    x = ndx.from_dlpack(once)
    with pytest.raises(BufferError, match="consumed already"):
        ndx.from_dlpack(once)
    del x
    assert exporter.deleted == 1


@pytest.mark.parametrize("bad", [None, 3, "capsule"])
def test_what_is_no_capsule(bad):
    class Bad:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **kwargs):
            return bad

    with pytest.raises(BufferError, match="not a DLPack capsule"):
        ndx.from_dlpack(Bad())


def test_what_speaks_no_dlpack():
    with pytest.raises(AttributeError):
        ndx.from_dlpack([1, 2, 3])
    with pytest.raises(ValueError, match="no device 'gpu'"):
        ndx.from_dlpack(np.ones(3), device="gpu")


def test_errors_of_the_exporter_come_through():
    class Broken:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **kwargs):
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        ndx.from_dlpack(Broken())


def test_round_trip_within_a_workspace():
    with ndx.workspace(size="4KiB") as workspace:
        x = ndx.arange(10)
        y = ndx.from_dlpack(x)
        assert not y.attached
    with workspace:
        ndx.full(500, -1)
    # The tensor pins what it is over.
    assert y.tolist() == list(range(10))
    with pytest.raises(ndx.StaleArrayError):
        x + 1


CHAIN = """
import sys
import numpy as np, ndx
x = ndx.ones(3)
for _ in range(200_000):
    x = ndx.from_dlpack(np.from_dlpack(x) if sys.argv[1] == "numpy" else x)
print(x.tolist())
del x
"""


@pytest.mark.parametrize("through", ["ndx", "numpy"])
def test_chains_of_tensors(through):
    """The end of a chain does not overflow the stack."""
    assert run_python(CHAIN, through) == "[1.0, 1.0, 1.0]\n"


# ---- producers that are wrong ------------------------------------------------

WRONG = {
    "no shape": ({"shape": None}, BufferError, "has 2 axes, but no shape"),
    "no data": ({"data": None}, BufferError, "has 6 elements, but no data"),
    "a long shape": ({"sizes": (2**40, 2**40)}, ValueError, "beyond the address space"),
    "much": ({"sizes": (2**62, 1)}, ValueError, "beyond the address space"),
    "a long stride": ({"steps": (2**61, 1)}, ValueError, "beyond the address space"),
    "far back": ({"steps": (-(2**61), 1)}, ValueError, "beyond the address space"),
    "strides that add up": (
        {"steps": (2**59, 2**59)}, ValueError, "beyond the address space",
    ),
    "an offset": ({"byte_offset": 2**63 + 8}, ValueError, "beyond the address space"),
}  # fmt: skip


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_tensors_that_can_not_be(name, versioned):
    fields, error, message = WRONG[name]
    fields = dict(fields)
    sizes, steps = fields.pop("sizes", None), fields.pop("steps", None)
    exporter = Exporter(np.ones((2, 3)), versioned=versioned, **fields)
    exporter.shape[:2] = sizes or (2, 3)
    exporter.strides[:2] = steps or (3, 1)
    with pytest.raises(error, match=message):
        ndx.from_dlpack(exporter)
    gc.collect()
    assert exporter.deleted == 1


def test_a_tensor_without_elements_needs_no_data():
    exporter = Exporter(np.ones((0, 3)), data=None)
    assert ndx.from_dlpack(exporter).shape == (0, 3)


def test_a_tensor_in_c_order_needs_no_strides():
    exporter = Exporter(np.arange(6.0).reshape(2, 3), strides=None)
    assert ndx.from_dlpack(exporter).tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
