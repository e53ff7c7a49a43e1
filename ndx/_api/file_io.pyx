"""Saving and loading arrays, and opening them in files.

Files are replaced as a whole (`_files.replace`) or changed in place through a shared
mapping. docs/files.md says what a crash leaves in either case.
"""

import os
from errno import EFAULT

from ndx._array.storage cimport (
    BaseArray, array_words, bare_array, loss_error, new_array, numpy_view,
    require_intact_file, require_live, set_layout,
)
from ndx._blocks.block cimport block_wrap
from ndx._compute.elementwise cimport as_operand
from ndx._files.mapping cimport Mapped, MappedFile, find_mapping, mapping_name
from ndx._lib.dtypes cimport FLOAT64, dtype_code, dtype_object, itemsize_of
from ndx._lib.layout cimport (
    MAXDIMS, count_elements, fill_c_strides, parse_shape, shape_tuple,
)

from ndx._files.mapping import reserve
from ndx._files.npy import (
    check_length, make_header, read_array, read_header, write_array,
)
from ndx._files.replace import Replacement, as_path, open_regular
from ndx._lib.system import is_in_shared_memory
from ndx.backends._pressure import release_on_disk

__all__ = ["load", "open", "save"]

cdef dict FLAGS = {"r": os.O_RDONLY, "r+": os.O_RDWR, "c": os.O_RDONLY}


def save(path: FilePath, x: Array) -> None:
    """Write an array to a file in NumPy's format, atomically.

    Parameters
    ----------
    path : str or os.PathLike
        The exact name of the file: no ``.npy`` is appended. Links are followed.
    x : array
        Written in C order, or in Fortran order if it is so in memory. Other layouts
        are written in blocks.

    Raises
    ------
    OSError
        If the file can't be written: the disk is full, the folder is gone or
        read-only, ... An existing file is unchanged then.
    MappedFileError
        If `x` itself is in a file that can't be read any more.

    Notes
    -----
    NumPy's ``save``. The data goes to a new file in the same folder, which is on disk
    before it replaces the old one: after a crash at any moment one of the two is there.
    Arrays that are open over the old file, which `x` may be, keep using that file,
    which then has no name.

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
    require_live(operand)
    fortran = operand.f_contiguous and not operand.c_contiguous
    header = make_header(shape_tuple(operand.ndim, operand.shape),
                         dtype_object(operand.dtype), fortran)
    nbytes = operand.size * itemsize_of[operand.dtype]
    # The view keeps the memory in place while writing releases the GIL.
    view = numpy_view(operand)
    with Replacement(as_path(path), len(header) + nbytes, release_on_disk) as new:
        new.write(header)
        try:
            write_array(new.fd, view)
        except OSError as error:
            if error.errno == EFAULT and find_mapping(operand.block.ptr, &mapped):
                # For lost pages a system call returns EFAULT and sends no signal.
                raise loss_error(array_words(operand),
                                 mapping_name(operand.block.ptr)) from None
            raise
        require_intact_file(operand)
        new.install()


def load(path: FilePath) -> NDArray:
    """Read an array from a file in NumPy's format.

    Parameters
    ----------
    path : str or os.PathLike
        The exact name of the file.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend; in Fortran order
        if the file is. Elements in another byte order are converted.

    Raises
    ------
    ValueError
        If the file has another format, is cut short, or its elements are not numbers.
        Pickles are never read.
    OSError
        If the file can't be read.
    OutOfMemoryError
        If the backend can't provide the memory.

    Notes
    -----
    NumPy's ``load``, for single arrays.

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
        x = new_array(0, code, ndim, lengths, order, False)
        read_array(fd, header, numpy_view(x), name)
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from error
    finally:
        os.close(fd)
    return x


def open(path: FilePath, mode: Literal["r", "r+", "w+", "c"] = "r",
         shape: Shape | None = None, dtype: DTypeLike = None, *,
         unlink: bool = False) -> NDArray:
    """Return an array over a file in NumPy's format, which may exceed the memory.

    Parameters
    ----------
    path : str or os.PathLike
        The exact name of the file. Links are followed.
    mode : {"r", "r+", "w+", "c"}
        Read only; read and write; replace the file by a new one of zeros; or change a
        copy in memory, which `NDArray.commit` writes to the file.
    shape : int or tuple of int, optional
        Shape of a new file, or the shape that an existing file must have.
    dtype : dtype, optional
        Dtype of a new file (default: float64), or the dtype that an existing file must
        have.
    unlink : bool
        Whether to remove the file's name once it is open, so that its content ends with
        the array. A file in ``/dev/shm`` is closed, too, and only its memory is kept: a
        process may have more of these arrays than open files.

    Returns
    -------
    NDArray
        In no workspace. `NDArray.flush` waits for the disk. The file is closed by
        `NDArray.close`, or with the last array that shares it.

    Raises
    ------
    ValueError
        If `ndx.load` could not read the file, it has another shape or dtype than given,
        or its elements can't be used in place because of their byte order or
        alignment. Later, if an array of mode ``"r"`` is written to.
    OSError
        If the file can't be opened, or the disk has no space for it or for its holes.

    Notes
    -----
    NumPy's ``lib.format.open_memmap``, except that ``"w+"`` replaces a file and never
    truncates it. If another process truncates the file, operations raise
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
        return made(as_path(path), shape, dtype, unlink)
    if mode not in FLAGS:
        raise ValueError(
            f"mode={mode!r} is not valid for ndx.open; valid are 'r', 'r+', 'w+', 'c'")
    return opened(as_path(path), mode, shape, dtype, unlink)


cdef BaseArray made(str path, object shape, object dtype, bint unlink):
    """Return an array over a new file, which replaces an existing one."""
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
        # Map before installing, so that a failure leaves the old file in its place.
        file = MappedFile(path, "w+", os.dup(new.fd))
        file.map(total, True, True)
        new.install()
        new.reopen()
        os.dup2(new.fd, file.fd, inheritable=False)
    if unlink:
        remove_name(file)
    return array_over(file, code, ndim, lengths, False, len(header))


cdef int remove_name(MappedFile file) except -1:
    """Remove the name of a file that was mapped, and keep its memory."""
    in_memory = is_in_shared_memory(file.path)
    os.unlink(file.path)
    if in_memory:
        file.close_descriptor()
    return 0


cdef BaseArray opened(str path, str mode, object shape, object dtype, bint unlink):
    """Return an array over an existing file."""
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef Py_ssize_t asked[MAXDIMS]
    # Parsed before the file is opened, because both may run the caller's code.
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
    # Another process may have truncated the file since its header was read. The array
    # must not exceed the mapping, which has the file's present length.
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
    if unlink:
        remove_name(file)
    return array_over(file, code, ndim, lengths, header.fortran, header.offset)


cdef BaseArray array_over(MappedFile file, int code, int ndim,
                          const Py_ssize_t *lengths, bint fortran, Py_ssize_t offset):
    """Return an array over the elements in a mapped file, which it keeps alive."""
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
