"""Random numbers: NumPy's generators, filling memory that ndx controls.

Not part of the standard. Like other new arrays, these lie in the current workspace, or
in memory of the current backend. A seed gives the same numbers on every backend.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from ndx._api.creation import empty, placed
from ndx._api.data_types import astype, float64, int64, isdtype
from ndx._api.indexing import take
from ndx._api.manipulation import broadcast_to, reshape
from ndx._api.missing_names import missing_name
from ndx._api.public import name_functions
from ndx._compute.numpy_calls import axis_index, call, host_argument, into, on_views
from ndx._core import NDArray
from ndx._lib.bit_generators import numpy_generator
from ndx._lib.device import CPU

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ndx._typing import Array, DTypeLike, Shape

__all__ = ["Generator", "default_rng"]


def _shape(size, dtype):
    """Return `size` as a shape; raise if an array of this dtype would be too large."""
    shape = () if size is None else size
    return broadcast_to(empty((), dtype=dtype, device=CPU), shape).shape


_SCALARS = frozenset((bool, float, int, type(None)))


def _parameters(size, *parameters, floating=True):
    """Return the shape of a result, and parameters with arrays in place of sequences.

    Without a size it is the shape to which the parameters are broadcast. `floating`:
    those that are no Python scalars become float64, in which nothing wraps around.
    """
    for each in parameters:
        if type(each) not in _SCALARS:
            break
    else:
        return size, *parameters
    found = [_parameter(each, floating) for each in parameters]
    shapes = [each.shape for each in found if isinstance(each, NDArray | np.ndarray)]
    if size is None and shapes:
        size = np.broadcast_shapes(*shapes)
    return size, *found


def _parameter(x, floating):
    if type(x) in _SCALARS:
        return x
    if isinstance(x, NDArray):
        return astype(x, float64, copy=False) if floating else x
    return np.asarray(x, dtype=np.float64 if floating else None)


def _any_negative(x):
    negative = x < 0
    return negative if isinstance(negative, bool) else bool(np.any(negative))


class Generator:
    """A stream of random numbers; made by `default_rng`.

    Parameters
    ----------
    generator : numpy.random.Generator
        Source of the numbers.

    Notes
    -----
    It has all methods of `numpy.random.Generator`. They take `size` as a shape (an int
    or a tuple of int; None for an array without axes), and return an NDArray. Only one
    thread at a time may use a generator;
    `spawn` makes one for each thread.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self._numpy = generator

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """NumPy's source of the random bits."""
        return self._numpy.bit_generator

    def __repr__(self):
        return f"Generator({type(self._numpy.bit_generator).__name__})"

    def __reduce__(self):
        return type(self), (self._numpy,)

    def spawn(self, n_children: int) -> list[Generator]:
        """Return independent generators.

        Parameters
        ----------
        n_children : int

        Returns
        -------
        list of Generator
        """
        return [Generator(child) for child in self._numpy.spawn(n_children)]

    def _filled(self, method, size, dtype, out=None):
        if out is not None:
            call(getattr(self._numpy, method), size, dtype=dtype, out=out)
            return out
        out = empty(() if size is None else size, dtype=dtype, device=CPU)
        if not isdtype(out.dtype, "real floating"):
            msg = f"dtype {out.dtype} is not real floating-point: float32 or float64"
            raise TypeError(msg)
        return into(out, getattr(self._numpy, method), dtype=out.dtype)

    def random(
        self,
        size: Shape | None = None,
        dtype: DTypeLike = float64,
        out: NDArray | None = None,
    ) -> NDArray:
        """Return numbers from the uniform distribution over [0, 1).

        Parameters
        ----------
        size : int or tuple of int, optional
        dtype : dtype
            float32 or float64.
        out : NDArray, optional
            The array to fill, contiguous and of this dtype.

        Returns
        -------
        NDArray

        Examples
        --------
        >>> import ndx
        >>> ndx.random.default_rng(1).random(2).shape
        (2,)
        """
        return self._filled("random", size, dtype, out)

    def uniform(
        self,
        low: float | Array = 0.0,
        high: float | Array = 1.0,
        size: Shape | None = None,
        *,
        dtype: DTypeLike = float64,
    ) -> NDArray:
        """Return numbers from the uniform distribution over [low, high).

        Parameters
        ----------
        low, high : float or NDArray
            Ends of the interval.
        size : int or tuple of int, optional
            Default: the shape to which the other parameters are broadcast.
        dtype : dtype
            float32 or float64.

        Returns
        -------
        NDArray
        """
        size, low, high = _parameters(size, low, high)
        out = self.random(size, dtype=dtype)
        out *= high - low
        out += low
        return out

    def normal(
        self,
        loc: float | Array = 0.0,
        scale: float | Array = 1.0,
        size: Shape | None = None,
        *,
        dtype: DTypeLike = float64,
    ) -> NDArray:
        """Return numbers from the normal distribution.

        Parameters
        ----------
        loc : float or NDArray
            The mean.
        scale : float or NDArray
            The standard deviation; not negative.
        size : int or tuple of int, optional
            Default: the shape to which the other parameters are broadcast.
        dtype : dtype
            float32 or float64.

        Returns
        -------
        NDArray

        Raises
        ------
        ValueError
            If `scale` is negative.
        """
        size, loc, scale = _parameters(size, loc, scale)
        if _any_negative(scale):
            msg = f"scale={scale} is negative; a standard deviation is 0 or more"
            raise ValueError(msg)
        out = self.standard_normal(size, dtype=dtype)
        out *= scale
        out += loc
        return out

    def standard_normal(
        self,
        size: Shape | None = None,
        dtype: DTypeLike = float64,
        out: NDArray | None = None,
    ) -> NDArray:
        """Return numbers from the normal distribution of mean 0 and deviation 1.

        Parameters
        ----------
        size : int or tuple of int, optional
        dtype : dtype
            float32 or float64.
        out : NDArray, optional
            The array to fill, contiguous and of this dtype.

        Returns
        -------
        NDArray
        """
        return self._filled("standard_normal", size, dtype, out)

    def exponential(
        self,
        scale: float | Array = 1.0,
        size: Shape | None = None,
        *,
        dtype: DTypeLike = float64,
    ) -> NDArray:
        """Return numbers from the exponential distribution.

        Parameters
        ----------
        scale : float or NDArray
            The mean; not negative.
        size : int or tuple of int, optional
            Default: the shape of `scale`.
        dtype : dtype
            float32 or float64.

        Returns
        -------
        NDArray

        Raises
        ------
        ValueError
            If `scale` is negative.
        """
        size, scale = _parameters(size, scale)
        if _any_negative(scale):
            msg = f"scale={scale} is negative; a mean of lifetimes is 0 or more"
            raise ValueError(msg)
        out = self._filled("standard_exponential", size, dtype)
        out *= scale
        return out

    def integers(
        self,
        low: int | Array,
        high: int | Array | None = None,
        size: Shape | None = None,
        *,
        dtype: DTypeLike = int64,
        endpoint: bool = False,
    ) -> NDArray:
        """Return integers from the uniform distribution over [low, high).

        Parameters
        ----------
        low, high : int or NDArray
            Ends of the interval. Without `high` it is ``[0, low)``.
        size : int or tuple of int, optional
            Default: the shape to which the other parameters are broadcast.
        dtype : dtype
            Of integers, or bool.
        endpoint : bool
            Whether `high` may be among the numbers.

        Returns
        -------
        NDArray

        Raises
        ------
        ValueError
            If the interval is empty, or does not fit the dtype.
        """
        dtype = empty((), dtype=dtype, device=CPU).dtype
        size, low, high = _parameters(size, low, high, floating=False)
        size = _shape(size, dtype)
        draw = self._numpy.integers
        return call(draw, low, high, size=size, dtype=dtype, endpoint=endpoint)

    def permutation(self, x: Array | int, *, axis: int = 0) -> NDArray:
        """Return the sub-arrays along an axis in random order.

        Parameters
        ----------
        x : int or NDArray
            An int n stands for ``arange(n)``.
        axis : int
            In ``[-x.ndim, x.ndim)``.

        Returns
        -------
        NDArray
            A new array.
        """
        if isinstance(x, int):
            return call(self._numpy.permutation, x)
        x = host_argument(x, "permutation")
        axis = axis_index(axis, x.ndim)
        return take(x, self.permutation(x.shape[axis]), axis=axis)

    def shuffle(self, x: NDArray, *, axis: int = 0) -> None:
        """Put the sub-arrays of `x` along an axis in random order, in place.

        Parameters
        ----------
        x : NDArray
            Writeable.
        axis : int
            In ``[-x.ndim, x.ndim)``.
        """
        x = host_argument(x, "shuffle")
        on_views(self._numpy.shuffle, x, axis=axis_index(axis, x.ndim))

    def choice(
        self,
        a: Array | int,
        size: Shape | None = None,
        *,
        replace: bool = True,
        p: Array | Sequence[float] | None = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> NDArray:
        """Return random sub-arrays along an axis.

        Parameters
        ----------
        a : int or NDArray
            Population to choose from; an int n stands for ``arange(n)``.
        size : int or tuple of int, optional
            Shape of the choices.
        replace : bool
            Whether a sub-array may be chosen twice.
        p : NDArray, shape (n,), optional
            The probability of each. Default: equal probabilities.
        axis : int
            Axis of `a` to choose along.
        shuffle : bool
            Whether the order is random, too, where nothing is chosen twice.

        Returns
        -------
        NDArray
            A new array: the shape of `a` with `size` in place of `axis`.

        Raises
        ------
        ValueError
            If the population is too small, or `p` does not match it.
        """
        if isinstance(a, int):
            shape = _shape(size, int64)
            options = {"replace": replace, "p": p, "shuffle": shuffle}
            return call(self._numpy.choice, a, shape, **options)
        a = host_argument(a, "choice")
        axis = axis_index(axis, a.ndim)
        chosen = self.choice(a.shape[axis], size, replace=replace, p=p, shuffle=shuffle)
        result = take(a, reshape(chosen, -1), axis=axis)
        shape = (*a.shape[:axis], *chosen.shape, *a.shape[axis + 1 :])
        return reshape(result, shape)


def _method(name):
    """Return the method of NumPy's generator with a name, which returns NDArrays."""

    def method(self, *args, **kwargs):
        result = call(getattr(self._numpy, name), *args, **kwargs)
        return placed(result, None) if isinstance(result, NDArray) else result

    functools.update_wrapper(method, getattr(np.random.Generator, name))
    return method


# The methods of other distributions are NumPy's, unchanged.
for _name in dir(np.random.Generator):
    if not _name.startswith("_") and not hasattr(Generator, _name):
        setattr(Generator, _name, _method(_name))


def default_rng(
    seed: int | Sequence[int] | np.random.Generator | None = None,
) -> Generator:
    """Return a generator of random numbers.

    Parameters
    ----------
    seed : int, sequence of int, numpy.random.Generator or other, optional
        As for ``numpy.random.default_rng``. The same seed gives the same numbers. With
        None they differ each time.

    Returns
    -------
    Generator

    Examples
    --------
    >>> import ndx
    >>> rng = ndx.random.default_rng(7)
    >>> rng.integers(0, 10, size=3).shape
    (3,)
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(numpy_generator(seed))


def __dir__():
    return __all__


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name):
        raise missing_name(__name__, name)


name_functions(globals())
