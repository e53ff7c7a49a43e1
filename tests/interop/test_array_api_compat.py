"""array-api-compat knows the arrays, and array-api-extra's functions take them."""

import array_api_compat
import array_api_extra as xpx
import numpy as np
import pytest
from helpers.commands import run_python
from helpers.consumers import COUNTS, MATRIX, VECTOR, check

import ndx
from ndx.testing import assert_equal

# Of functions that the standard has by now.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")

MASK = VECTOR > 0.5
HOLES = np.where(MASK, VECTOR, np.nan)
EXTRA = {
    "angle": (lambda xp, x: xpx.angle(x - 0.5j), [VECTOR]),
    "apply_where": (
        lambda xp, c, x: xpx.apply_where(c, x, lambda a: a * 2, lambda a: -a),
        [MASK, VECTOR],
    ),
    "apply_where fill": (
        lambda xp, c, x: xpx.apply_where(c, x, lambda a: a * 2, fill_value=7.0),
        [MASK, VECTOR],
    ),
    "at set": (lambda xp, x: xpx.at(x, 2).set(1.0), [VECTOR]),
    "at add": (lambda xp, x: xpx.at(x)[1:4].add(1.0), [VECTOR]),
    "at subtract": (lambda xp, x: xpx.at(x)[::-2].subtract(x[::-2]), [VECTOR]),
    "at multiply": (lambda xp, x, c: xpx.at(x)[c].multiply(2.0), [VECTOR, MASK]),
    "at divide": (lambda xp, x: xpx.at(x)[..., 1].divide(2.0), [MATRIX]),
    "at power": (lambda xp, x: xpx.at(x)[2].power(2.0), [MATRIX]),
    "at min": (lambda xp, x: xpx.at(x)[:5].min(0.5), [VECTOR]),
    "at max": (lambda xp, x: xpx.at(x)[:5].max(0.5), [VECTOR]),
    "argpartition": (
        lambda xp, x: xp.take(x, xpx.argpartition(x, 0)[:1], axis=0),
        [VECTOR],
    ),
    "atleast_nd": (lambda xp, x: xpx.atleast_nd(x, ndim=3), [VECTOR]),
    "cov": (lambda xp, x: xpx.cov(x), [MATRIX]),
    "cov of one": (lambda xp, x: xpx.cov(x), [VECTOR]),
    "create_diagonal": (lambda xp, x: xpx.create_diagonal(x, offset=-1), [VECTOR]),
    "deg2rad": (lambda xp, x: xpx.deg2rad(x), [VECTOR]),
    "diag_indices": (lambda xp: xpx.diag_indices(3, xp=xp), []),
    "expand_dims": (lambda xp, x: xpx.expand_dims(x, axis=(0, 2)), [VECTOR]),
    "isclose": (
        lambda xp, x, y: xpx.isclose(x, y, equal_nan=True),
        [HOLES, HOLES + 1e-9],
    ),
    "isin": (lambda xp, x, y: xpx.isin(x, y), [COUNTS, COUNTS[:3]]),
    "kron": (lambda xp, x, y: xpx.kron(x, y), [MATRIX, MATRIX[:2]]),
    "lazy_apply": (lambda xp, x: xpx.lazy_apply(np.sin, x, as_numpy=True), [VECTOR]),
    "nan_to_num": (lambda xp, x: xpx.nan_to_num(x, fill_value=3.0), [HOLES]),
    "nanmax": (lambda xp, x: xpx.nanmax(x), [HOLES]),
    "nanmean": (lambda xp, x: xpx.nanmean(x), [HOLES]),
    "nanmin": (lambda xp, x: xpx.nanmin(x), [HOLES]),
    "nansum": (lambda xp, x: xpx.nansum(x), [HOLES]),
    "nunique": (lambda xp, x: xp.asarray(xpx.nunique(x)), [COUNTS]),
    "one_hot": (lambda xp, x: xpx.one_hot(x, 10, dtype=xp.float32), [COUNTS]),
    "pad": (
        lambda xp, x: xpx.pad(x, ((1, 2), (0, 1)), constant_values=5.0),
        [MATRIX],
    ),
    "partition": (lambda xp, x: xpx.partition(x, 3)[3], [VECTOR]),
    "rad2deg": (lambda xp, x: xpx.rad2deg(x), [VECTOR]),
    "searchsorted": (
        lambda xp, x, y: xpx.searchsorted(xp.sort(x), y, side="right"),
        [VECTOR, VECTOR[:3]],
    ),
    "setdiff1d": (lambda xp, x, y: xpx.setdiff1d(x, y), [COUNTS, COUNTS[:3]]),
    "sinc": (lambda xp, x: xpx.sinc(x), [VECTOR]),
    "tril_indices": (lambda xp: xpx.tril_indices(4, xp=xp), []),
    "triu_indices": (lambda xp: xpx.triu_indices(4, offset=1, xp=xp), []),
    "union1d": (lambda xp, x, y: xpx.union1d(x, y), [COUNTS, COUNTS[:3] + 7]),
    "unravel_index": (lambda xp, x: xpx.unravel_index(x, (2, 5)), [COUNTS]),
}


@pytest.mark.parametrize("name", EXTRA)
def test_extra(name):
    call, operands = EXTRA[name]
    check(call, *operands)


def test_extra_without_arrays():
    assert xpx.default_dtype(ndx) == ndx.float64
    assert xpx.default_dtype(ndx, "integral") == ndx.int64
    assert xpx.broadcast_shapes((2, 1), (3,)) == (2, 3)


def test_at_writes_in_place_where_that_is_asked():
    x = ndx.zeros(3)
    assert xpx.at(x, 1).set(5.0, copy=False) is x
    assert_equal(x, [0.0, 5.0, 0.0])
    y = xpx.at(x, 1).set(6.0, copy=True)
    assert_equal(x, [0.0, 5.0, 0.0])
    assert_equal(y, [0.0, 6.0, 0.0])


def test_the_namespace_of_an_array():
    x = ndx.ones(2)
    assert array_api_compat.array_namespace(x) is ndx
    assert array_api_compat.array_namespace(x, ndx.zeros(1), 1.0, None) is ndx
    assert array_api_compat.array_namespace(x, api_version="2025.12") is ndx
    assert array_api_compat.get_namespace(x) is ndx


def test_an_array_is_one_of_the_array_api_and_of_no_known_library():
    x = ndx.ones(2)
    assert array_api_compat.is_array_api_obj(x)
    assert array_api_compat.is_writeable_array(x)
    assert not array_api_compat.is_lazy_array(x)
    for name in ("numpy", "cupy", "torch", "jax", "dask", "ndonnx", "pydata_sparse"):
        assert not getattr(array_api_compat, f"is_{name}_array")(x)


def test_namespaces_do_not_mix():
    with pytest.raises(TypeError, match=r"[Mm]ultiple"):
        array_api_compat.array_namespace(ndx.ones(2), np.ones(2))


def test_size_and_device():
    x = ndx.ones((2, 3))
    assert array_api_compat.size(x) == 6
    assert array_api_compat.device(x) == "cpu"
    assert array_api_compat.to_device(x, "cpu") is x


def test_the_namespace_of_a_number_in_scipy():
    """SciPy asks the class of an argument itself: elements are floats, too."""
    pytest.importorskip("scipy")
    run_python(
        """
        import os
        os.environ["SCIPY_ARRAY_API"] = "1"
        import numpy as np
        import ndx
        from scipy._lib._array_api import array_namespace
        array_namespace(np.float64(1.0), np.int64(1))
        for x in ndx.ones(3), ndx.arange(3), ndx.ones(3, dtype="complex128"):
            assert array_namespace(x[0]) is array_namespace(x, x[0]) is ndx
        """
    )


def test_a_number_is_not_written():
    x = ndx.zeros(1)
    assert array_api_compat.is_writeable_array(x)
    assert array_api_compat.is_writeable_array(ndx.asarray(1.0))
    for number in x[0], ndx.arange(2)[1]:
        assert not array_api_compat.is_writeable_array(number)
        assert_equal(xpx.at(number)[()].set(7), 7)
        with pytest.raises(ValueError, match="read-only"):
            xpx.at(number)[()].set(7, copy=False)
