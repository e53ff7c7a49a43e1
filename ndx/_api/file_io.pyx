"""Arrays in files: saved, loaded, and opened in place.

Files are replaced as a whole (`_files.replace`) or changed in place through a shared
mapping; what a crash leaves of each is in docs/files.md.
"""

import os
from errno import EFAULT

from ndx._array.storage cimport (
    BaseArray, array_words, bare_array, check, loss_error, new_ordered, numpy_view,
    recheck, set_layout,
)
from ndx._blocks.block cimport block_wrap
from ndx._compute.elementwise cimport as_operand
from ndx._files.mapped_file cimport MappedFile
from ndx._files.mapping cimport Mapped, find_mapping, mapping_name
from ndx._lib.dtypes cimport FLOAT64, dtype_code, dtype_object, itemsize_of
from ndx._lib.layout cimport (
    MAXDIMS, count_elements, fill_c_strides, parse_shape, shape_tuple,
)

from ndx._files.mapped_file import reserve
from ndx._files.npy import (
    check_length, make_header, read_array, read_header, write_array,
)
from ndx._files.replace import Replacement, as_path, open_regular
from ndx.backends._pressure import release_on_disk

__all__ = ["load", "open", "save"]

cdef dict FLAGS = {"r": os.O_RDONLY, "r+": os.O_RDWR, "c": os.O_RDONLY}


def save(path, x):
    """Write an array to a file in NumPy's format, whole or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        The file, named just so: no ``.npy`` is appended. Links are followed.
    x : array
        In C order or, if it lies so in memory, in Fortran's; any other layout is
        written in blocks, in C order.

    Raises
    ------
    OSError
        If it can't be written: the disk is full, the folder is gone or read-only, ...
        An old file is as it was then.
    MappedFileError
        If `x` itself lies in a file that can't be read any more.

    Notes
    -----
    NumPy's ``save``. The data goes to a new file in the same folder, which is on disk
    before it takes the place of the old one: a crash at any moment leaves one of the
    two. Arrays that are open over the old file go on with that, which has no name
    any more; so `x` may be one of them.

    Examples
    --------
    >>> import ndx, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.npy")
    ...     ndx.save(path, ndx.arange(3))
    ...     ndx.load(path)
    NDArray([0, 1, 2])
    """
    cdef BaseArray operand = as_operand(x)
    cdef Mapped mapped
    if operand is None:
        raise TypeError(
            f"save takes an array, not {type(x).__name__}; convert with ndx.asarray")
    check(operand)
    fortran = operand.f_contiguous and not operand.c_contiguous
    header = make_header(shape_tuple(operand.ndim, operand.shape),
                         dtype_object(operand.dtype), fortran)
    nbytes = operand.size * itemsize_of[operand.dtype]
    # Also while the GIL is free, the memory stays as long as this.
    view = numpy_view(operand)
    with Replacement(as_path(path), len(header) + nbytes, release_on_disk) as new:
        new.write(header)
        try:
            write_array(new.fd, view)
        except OSError as error:
            if error.errno == EFAULT and find_mapping(operand.block.ptr, &mapped):
                # The system reads such pages itself, and raises no signal.
                raise loss_error(array_words(operand),
                                 mapping_name(operand.block.ptr)) from None
            raise
        recheck(operand)
        new.install()


def load(path):
    """Read an array from a file in NumPy's format.

    Parameters
    ----------
    path : str or os.PathLike
        The file, named just so.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend; in Fortran's
        order if the file is. Elements in another byte order are converted.

    Raises
    ------
    ValueError
        If it is no such file, is cut short, or its elements are not numbers; pickles
        are never read.
    OSError
        If it can't be read.
    OutOfMemoryError
        If the backend can't serve it.

    Notes
    -----
    NumPy's ``load``, of single arrays.

    Examples
    --------
    >>> import ndx, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.npy")
    ...     ndx.save(path, ndx.ones(2))
    ...     with ndx.workspace("step"):
    ...         ndx.load(path)
    NDArray([1., 1.], workspace='step')
    """
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int order[MAXDIMS]
    cdef int code, ndim, i
    cdef BaseArray x
    name = as_path(path)
    fd = open_regular(name, os.O_RDONLY)
    try:
        header = read_header(fd, name)
        code = dtype_code(header.dtype.newbyteorder("="))
        ndim = parse_shape(header.shape, lengths)
        for i in range(ndim):
            order[i] = ndim - 1 - i if header.fortran else i
        x = new_ordered(code, ndim, lengths, order, False, None)
        read_array(fd, header, numpy_view(x), name)
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from error
    finally:
        os.close(fd)
    return x


def open(path, mode="r", shape=None, dtype=None):
    """Return an array over a file in NumPy's format, which may exceed the memory.

    Parameters
    ----------
    path : str or os.PathLike
        The file, named just so. Links are followed.
    mode : {"r", "r+", "w+", "c"}
        To read; to read and change the file; to make a new one, of zeros, in place of
        what is there; or to change a copy in memory, which `NDArray.commit` writes.
    shape : int or tuple of int, optional
        Of a new file. Of one that is there: what it must have.
    dtype : dtype, optional
        Of a new file; default: float64. Of one that is there: what it must have.

    Returns
    -------
    NDArray
        In no workspace. `NDArray.flush` waits for the disk, `NDArray.close` lets go
        of the file, as does the end of the last array that shares it.

    Raises
    ------
    ValueError
        If the file is not as `ndx.load` wants it, has another shape or dtype than
        given, or its elements can't be used in place: in another byte order, or at
        odd addresses. Later: if something writes to an array of mode ``"r"``.
    OSError
        If it can't be opened, or the disk has no space for it or for its holes.

    Notes
    -----
    NumPy's ``lib.format.open_memmap``, except that ``"w+"`` never empties a file: it
    replaces it. If another process cuts the file short, operations raise
    `MappedFileError`. A forked child shares the file, except with mode ``"c"``.

    Examples
    --------
    >>> import ndx, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.npy")
    ...     x = ndx.open(path, "w+", shape=(2, 3))
    ...     x[0] = 5.0
    ...     x.flush()
    ...     x.close()
    ...     ndx.open(path)
    NDArray([[5., 5., 5.],
             [0., 0., 0.]])
    """
    if mode == "w+":
        return made(as_path(path), shape, dtype)
    if mode not in FLAGS:
        raise ValueError(
            f"mode={mode!r} is not valid for ndx.open; valid are 'r', 'r+', 'w+', 'c'")
    return opened(as_path(path), mode, shape, dtype)


cdef BaseArray made(str path, object shape, object dtype):
    """Return an array over a new file, which replaces what is there."""
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int code = FLOAT64 if dtype is None else dtype_code(dtype), ndim
    cdef MappedFile file = None
    if shape is None:
        raise ValueError("mode 'w+' makes a file: it needs a shape")
    ndim = parse_shape(shape, lengths)
    nbytes = count_elements(ndim, lengths, itemsize_of[code]) * itemsize_of[code]
    header = make_header(shape_tuple(ndim, lengths), dtype_object(code), False)
    total = len(header) + nbytes
    with Replacement(path, total, release_on_disk) as new:
        new.write(header)
        # Mapped first: what fails leaves the old file in its place.
        file = MappedFile(path, "w+", os.dup(new.fd))
        file.map(total, True, True)
        new.install()
        os.dup2(new.fd, file.fd, inheritable=False)
    return array_over(file, code, ndim, lengths, False, len(header))


cdef BaseArray opened(str path, str mode, object shape, object dtype):
    """Return an array over a file that is there."""
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef Py_ssize_t asked[MAXDIMS]
    # Both may run the caller's code, which the file must not wait for.
    cdef int asked_code = -1 if dtype is None else dtype_code(dtype)
    cdef int asked_ndim = -1 if shape is None else parse_shape(shape, asked)
    cdef int code, ndim
    cdef MappedFile file = MappedFile(path, mode, open_regular(path, FLAGS[mode]))
    header = read_header(file.fd, path)
    code = dtype_code(header.dtype.newbyteorder("="))
    ndim = parse_shape(header.shape, lengths)
    if not header.dtype.isnative or header.offset % header.dtype.alignment:
        found = "in another byte order" if not header.dtype.isnative else \
            f"at byte {header.offset}, which is not a multiple of their alignment"
        raise ValueError(
            f"the elements of {path!r} ({header.dtype}) can't be used in place: they "
            f"are {found}; ndx.load reads them")
    if asked_code >= 0 and asked_code != code:
        raise ValueError(
            f"{path!r} has elements of {header.dtype}, not "
            f"{dtype_object(asked_code)}; leave dtype away, "
            "or give mode 'w+' to make a new file")
    if asked_ndim >= 0 and shape_tuple(asked_ndim, asked) != header.shape:
        raise ValueError(
            f"{path!r} has shape {header.shape}, not "
            f"{shape_tuple(asked_ndim, asked)}; leave shape away, or give mode 'w+' to "
            "make a new file")
    # The mapping has this length. Another process may have cut the file short since its
    # header was read, and the array must not reach beyond its mapping.
    length = os.fstat(file.fd).st_size
    check_length(header, length, path)
    if mode == "r+":
        try:
            reserve(file.fd, length)
        except OSError as error:
            raise OSError(
                error.errno, f"{os.strerror(error.errno)}: it has holes, for which "
                "the disk has no space; its content is as it was", path) from error
    file.map(length, mode != "r", mode != "c")
    return array_over(file, code, ndim, lengths, header.fortran, header.offset)


cdef BaseArray array_over(MappedFile file, int code, int ndim,
                          const Py_ssize_t *lengths, bint fortran, Py_ssize_t offset):
    """Return an array over the elements in a mapped file, which it keeps."""
    cdef BaseArray x = bare_array(ndim)
    cdef Py_ssize_t step = itemsize_of[code]
    cdef int axis
    x.dtype = <unsigned char>code
    x.readonly = file.mode == "r"
    for axis in range(ndim):
        x.shape[axis] = lengths[axis]
    if fortran:
        for axis in range(ndim):
            x.strides[axis] = step
            step *= max(lengths[axis], 1)
    else:
        fill_c_strides(ndim, lengths, step, x.strides)
    set_layout(x)
    x.block = block_wrap(file.start + offset, x.size * itemsize_of[code], x.readonly,
                         file)
    return x
