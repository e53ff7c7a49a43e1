"""Call stacks of the user's program, as numbers of tables."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int32_t

import os
import weakref

from ndx._lib.call_site import begins_process, is_ours, shown

# Without a GIL a mutex guards the tables of all `CallStacks`: their lists and dicts
# have locks of their own, so that a thread may have to wait for one.

cdef extern from *:
    """
    #include <string.h>
    #ifdef Py_GIL_DISABLED
    static PyMutex ndx_tables;
    static void ndx_lock_tables(void) { PyMutex_Lock(&ndx_tables); }
    static void ndx_unlock_tables(void) { PyMutex_Unlock(&ndx_tables); }
    static void ndx_renew_tables(void) { memset(&ndx_tables, 0, sizeof ndx_tables); }
    #else
    static inline void ndx_lock_tables(void) { }
    static inline void ndx_unlock_tables(void) { }
    static inline void ndx_renew_tables(void) { }
    #endif
    """
    void lock_tables "ndx_lock_tables"() noexcept
    void unlock_tables "ndx_unlock_tables"() noexcept
    void renew_tables "ndx_renew_tables"() noexcept

cdef extern from "ndx/internal/interpreter.h":
    # The functions return new references.
    PyObject *ndx_current_frame() noexcept
    PyObject *ndx_caller(PyObject *frame) noexcept
    PyObject *ndx_code_of(PyObject *frame) noexcept
    int ndx_position(PyObject *frame) noexcept
    int ndx_line_of(PyObject *code, int lasti) noexcept

# Codes in place of the number of a line: the function belongs to ndx or to Python
# itself; or it is the one with which a child process begins.
cdef enum:
    OURS = -1
    BEGIN = -2


def _renew_tables():
    """Free the lock of the tables in a forked child, where no thread has it."""
    renew_tables()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_tables)


cdef class CallStacks:
    """Tables of lines and of stacks, each with a number."""

    def __cinit__(self):
        self.lines, self.stacks, self.codes, self.numbers = [], [], {}, {}

    cdef int32_t add(self, object key, list table, object entry) except -2:
        """Return the number of a new entry, unless another thread has just added it."""
        cdef object number
        lock_tables()
        try:
            number = self.numbers.get(key)
            if number is None:
                table.append(entry)
                number = self.numbers[key] = len(table) - 1
        finally:
            unlock_tables()
        return number

    cdef int32_t stack_number(self) except -2:
        """Return the number of the user's call stack, innermost line first."""
        cdef list found = []
        cdef PyObject *frame = ndx_current_frame()
        cdef PyObject *code
        cdef PyObject *caller
        try:
            while frame != NULL and len(found) < self.depth:
                code = ndx_code_of(frame)
                try:
                    number = self.line_number(code, ndx_position(frame))
                finally:
                    Py_DECREF(<object>code)
                if number == BEGIN:
                    break
                if number != OURS:
                    found.append(number)
                caller = ndx_caller(frame)
                Py_DECREF(<object>frame)
                frame = caller
        finally:
            if frame != NULL:
                Py_DECREF(<object>frame)
        key = ("stack", *found)
        number = self.numbers.get(key)
        if number is None:
            number = self.add(key, self.stacks, tuple(found))
        return number

    cdef object line_number(self, PyObject *code, int instruction):
        """Return the number of a line; or `OURS` or `BEGIN`, for lines without one."""
        cdef object address = <size_t>code
        cdef tuple known = self.codes.get(address)
        if known is None:
            known = self.known_code(address, <object>code)
        number = (<dict>known[1]).get(instruction)
        if number is not None:
            return number
        file = (<object>code).co_filename
        if is_ours(file):
            number = BEGIN if begins_process(<object>code) else OURS
        else:
            text = (f"{shown(file)}:{ndx_line_of(code, instruction)} in "
                    f"{(<object>code).co_qualname}")
            number = self.numbers.get(text)
            if number is None:
                number = self.add(text, self.lines, text)
        (<dict>known[1])[instruction] = number
        return number

    cdef tuple known_code(self, object address, object code):
        """Return the entry of a code object, which goes when that does."""
        cdef object codes = self.codes

        def forget(reference):
            codes.pop(address, None)

        return codes.setdefault(address, (weakref.ref(code, forget), {}))
