"""All methods of NumPy's generators: NumPy's numbers, in memory of ndx."""

import pickle
from operator import methodcaller

import numpy as np
import pytest

import ndx
import ndx.numpy as face

CALLS = {
    "beta": (1.0, 2.0),
    "binomial": (10, 0.5),
    "chisquare": (2,),
    "choice": (6,),
    "dirichlet": ([1.0, 2.0],),
    "exponential": (2.0,),
    "f": (2, 3),
    "gamma": (2.0,),
    "geometric": (0.3,),
    "gumbel": (),
    "hypergeometric": (5, 6, 7),
    "integers": (9,),
    "laplace": (),
    "logistic": (),
    "lognormal": (),
    "logseries": (0.5,),
    "multinomial": (5, [0.5, 0.5]),
    "multivariate_hypergeometric": ([3, 4], 2),
    "multivariate_normal": ([0.0, 1.0], [[1.0, 0.0], [0.0, 2.0]]),
    "negative_binomial": (3, 0.5),
    "noncentral_chisquare": (2, 1),
    "noncentral_f": (2, 3, 1),
    "normal": (1.0, 2.0),
    "pareto": (2.0,),
    "poisson": (3.0,),
    "power": (2.0,),
    "rand": None,
    "randint": (9,),
    "random": (),
    "rayleigh": (),
    "standard_cauchy": (),
    "standard_exponential": (),
    "standard_gamma": (2.0,),
    "standard_normal": (),
    "standard_t": (3,),
    "triangular": (0.0, 1.0, 2.0),
    "uniform": (1.0, 2.0),
    "vonmises": (0.0, 1.0),
    "wald": (1.0, 2.0),
    "weibull": (2.0,),
    "zipf": (2.0,),
}
OTHERS = {"bit_generator", "bytes", "permutation", "permuted", "shuffle", "spawn"}
GENERATOR = [name for name in CALLS if hasattr(np.random.Generator, name)]
LEGACY = [
    name for name in CALLS if hasattr(np.random, name) and CALLS[name] is not None
]


def test_each_method_is_called():
    names = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert names == {*GENERATOR, *OTHERS}


@pytest.mark.parametrize("make", [ndx.random.default_rng, face.random.default_rng])
@pytest.mark.parametrize("name", GENERATOR)
def test_numbers_are_numpys(make, name):
    call = methodcaller(name, *CALLS[name], size=3)
    expected = call(np.random.default_rng(7))
    found = call(make(7))
    assert isinstance(found, ndx.NDArray)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-15)
    with ndx.workspace("random"):
        assert call(make(7)).workspace == "random"


@pytest.mark.parametrize("make", [ndx.random.default_rng, face.random.default_rng])
def test_the_others(make):
    numpy, ours = np.random.default_rng(1), make(1)
    assert ours.bytes(3) == numpy.bytes(3)
    x, n = ndx.arange(6), np.arange(6)
    ours.shuffle(x)
    numpy.shuffle(n)
    assert x.tolist() == n.tolist()
    for name in ("permutation", "permuted"):
        assert getattr(ours, name)(x).tolist() == getattr(numpy, name)(n).tolist()
    assert [each.random(2).tolist() for each in ours.spawn(2)] == [
        each.random(2).tolist() for each in numpy.spawn(2)
    ]
    again = pickle.loads(pickle.dumps(ours))
    assert again.random(3).tolist() == ours.random(3).tolist()
    assert isinstance(ours.bit_generator, np.random.BitGenerator)


@pytest.mark.parametrize("name", LEGACY)
def test_legacy_functions_and_random_state(name):
    np.random.seed(5)
    expected = getattr(np.random, name)(*CALLS[name], size=4)
    face.random.seed(5)
    found = getattr(face.random, name)(*CALLS[name], size=4)
    again = getattr(face.random.RandomState(5), name)(*CALLS[name], size=4)
    for each in (found, again):
        assert isinstance(each, ndx.NDArray)
        np.testing.assert_array_equal(np.asarray(each), expected)


def test_scalars_are_numpys():
    assert type(face.random.default_rng(1).normal()) is float
    assert face.random.rand(2, 3).shape == (2, 3)
    x = face.arange(5)
    face.random.seed(3)
    face.random.shuffle(x)
    n = np.arange(5)
    np.random.seed(3)
    np.random.shuffle(n)
    assert x.tolist() == n.tolist()


@pytest.mark.parametrize("out", [0, 1.5, (1,), [1.0], np.dtype("f8"), object()])
def test_an_output_is_an_array(out):
    # NumPy reads flags of an array in any object, and may crash.
    rng = face.random.default_rng(0)
    for call in (
        lambda: rng.random(3, out=out),
        lambda: rng.random(3, "f8", out),
        lambda: rng.standard_normal(out=out),
        lambda: rng.standard_exponential(3, "f8", "zig", out),
        lambda: rng.standard_gamma(2.0, 3, "f8", out),
    ):
        with pytest.raises(TypeError, match="out must be an array, not"):
            call()
    for kind in (np, face):
        x = kind.zeros(3)
        assert rng.random(out=x) is x
        assert x.all()
