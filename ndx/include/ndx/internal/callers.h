/* Who calls an operator: the interpreter itself, for an operand on its stack, or C code.
 *
 * An operand with one reference is a temporary only if the caller is the interpreter's
 * loop: C code may hold the one reference, or have it from the interpreter's stack, and
 * use the array again. And from CPython 3.14 on that reference may be a variable's. The
 * return addresses on the C stack tell the two apart. From the modules given to
 * `ndx_callers_know` they lead through the interpreter's operator functions to its loop,
 * and the place there where it calls operators. They are learned from known operators
 * when ndx is imported (`_compute/temporaries.pyx`). C code that calls an operator, or
 * ends with a jump to it, leaves others. Operators of one operand can't be told: there
 * the interpreter jumps, too. All of this needs the GIL.
 */
#ifndef NDX_CALLERS_H
#define NDX_CALLERS_H

#include <Python.h>

#if defined(__GLIBC__) && !defined(Py_GIL_DISABLED)
#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>

enum { NDX_DEPTH = 16, NDX_LENGTH = 4, NDX_CHAINS = 32, NDX_CACHED = 256 };
enum { NDX_UNKNOWN, NDX_OTHER, NDX_OURS, NDX_CORE, NDX_LOOP };

typedef struct { void *address[NDX_LENGTH]; } ndx_chain;

static struct {
    void *ours[4];      /* where our modules begin in memory */
    void *core;         /* where the interpreter begins */
    ndx_chain chains[NDX_CHAINS];
    int count;
    struct { void *address; int kind; } cache[NDX_CACHED];
} ndx_callers;

/* Note a module of ours by the address of a function of it. */
static int ndx_callers_know(void *ours) {
    Dl_info info;
    if (ndx_callers.core == NULL &&
            dladdr((void *)(uintptr_t)&PyNumber_Add, &info) != 0)
        ndx_callers.core = info.dli_fbase;
    if (dladdr(ours, &info) == 0) return 0;
    for (int i = 0; i < 4; i++)
        if (ndx_callers.ours[i] == NULL || ndx_callers.ours[i] == info.dli_fbase) {
            ndx_callers.ours[i] = info.dli_fbase;
            return 1;
        }
    return 0;
}

static int ndx_kind_of(void *address) {
    size_t slot = ((uintptr_t)address * 11400714819323198485u) >> 56;
    int kind = NDX_OTHER;
    Dl_info info;
    if (ndx_callers.cache[slot].address == address)
        return ndx_callers.cache[slot].kind;
    /* One back: a call that never returns may be the last of its function. */
    if (dladdr((char *)address - 1, &info) != 0) {
        if (info.dli_saddr == (void *)(uintptr_t)&_PyEval_EvalFrameDefault)
            kind = NDX_LOOP;
        else if (info.dli_fbase == ndx_callers.core)
            kind = NDX_CORE;
        for (int i = 0; i < 4 && kind == NDX_OTHER; i++)
            if (info.dli_fbase == ndx_callers.ours[i]) kind = NDX_OURS;
    }
    ndx_callers.cache[slot].address = address;
    ndx_callers.cache[slot].kind = kind;
    return kind;
}

/* Find the interpreter's addresses from our modules to its loop, which is the last; 0:
 * there is something else, or more or less than operators of two operands have. */
static int ndx_find_chain(ndx_chain *chain) {
    void *found[NDX_DEPTH];
    int depth = backtrace(found, NDX_DEPTH), i = 0, n = 0, kind = NDX_OURS;
    memset(chain, 0, sizeof *chain);
    /* Sanitizers call `backtrace` from a function of their own. */
    while (i < depth && ndx_kind_of(found[i]) != NDX_OURS) i++;
    while (i < depth && (kind = ndx_kind_of(found[i])) == NDX_OURS) i++;
    for (; i < depth && n < NDX_LENGTH; kind = ndx_kind_of(found[i])) {
        if (kind != NDX_CORE && kind != NDX_LOOP) return 0;
        chain->address[n++] = found[i];
        if (kind == NDX_LOOP) return n > 1;
        if (++i == depth) return 0;
    }
    return 0;
}

/* Remember the callers of this operator, which the interpreter's loop runs now. */
static int ndx_callers_learn(void) {
    ndx_chain chain;
    if (!ndx_find_chain(&chain)) return -1;
    for (int i = 0; i < ndx_callers.count; i++)
        if (memcmp(&chain, &ndx_callers.chains[i], sizeof chain) == 0) return 0;
    if (ndx_callers.count == NDX_CHAINS) return -1;
    ndx_callers.chains[ndx_callers.count++] = chain;
    return 0;
}

static inline int ndx_callers_count(void) { return ndx_callers.count; }

/* Whether x, with one reference, is an operand on the interpreter's stack alone. */
static int ndx_is_temporary(PyObject *x) {
    ndx_chain chain;
#if PY_VERSION_HEX >= 0x030E0000
    if (!PyUnstable_Object_IsUniqueReferencedTemporary(x)) return 0;
#endif
    if (Py_REFCNT(x) != 1 || ndx_callers.count == 0 || !ndx_find_chain(&chain))
        return 0;
    for (int i = 0; i < ndx_callers.count; i++)
        if (memcmp(&chain, &ndx_callers.chains[i], sizeof chain) == 0) return 1;
    return 0;
}

#else
static inline int ndx_callers_know(void *ours) { (void)ours; return 0; }
static inline int ndx_callers_learn(void) { return 0; }
static inline int ndx_callers_count(void) { return 0; }
static inline int ndx_is_temporary(PyObject *x) { (void)x; return 0; }
#endif

/* Whether the interpreter's stack counts its reference to x, an operand or argument of
 * the running instruction. From CPython 3.14 on it may borrow that of a local variable.
 * Without the GIL counts can't be changed for a moment, so that the answer is no. */
static inline int ndx_interpreter_owns(PyObject *x) {
#if PY_VERSION_HEX < 0x030E0000
    (void)x;
    return 1;
#elif defined(Py_GIL_DISABLED)
    (void)x;
    return 0;
#else
    Py_ssize_t count = Py_REFCNT(x);
    int owns;
    Py_SET_REFCNT(x, 1); /* that function asks for one first */
    owns = PyUnstable_Object_IsUniqueReferencedTemporary(x);
    Py_SET_REFCNT(x, count);
    return owns;
#endif
}

/* Whether there are weak references to x, whose type supports them. */
static inline int ndx_has_weakrefs(PyObject *x) {
    return *(PyObject **)((char *)x + Py_TYPE(x)->tp_weaklistoffset) != NULL;
}

/* The addition of a type: a function of the module that defines it. */
static inline void *ndx_add_of(PyTypeObject *type) {
    return (void *)(uintptr_t)type->tp_as_number->nb_add;
}

#endif
