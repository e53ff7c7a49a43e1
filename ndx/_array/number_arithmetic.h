/* Arithmetic and comparison of real numbers, on their values.
 *
 * The operands are numbers of float64 and int64, Python's floats, or Python's ints that
 * fit int64; or numbers of one smaller type (`ndx_read_narrow`). The results are those of
 * NumPy's scalars. For all else, and while NumPy's errors of floating point are asked for,
 * the slot of the array type computes. */
#ifndef NDX_NUMBER_ARITHMETIC_H
#define NDX_NUMBER_ARITHMETIC_H

#include <Python.h>
#include <math.h>
#include <stdint.h>

#include "number_types.h"
#include "ndx/internal/free_threading.h"
#include "ndx/internal/integers.h"

/* The element of a number, which follows the object's head. */
#define NDX_CELL(x) ((char *)(x) + sizeof(PyObject))

enum { NDX_OTHER = 0, NDX_INTEGER = 1, NDX_DOUBLE = 2 };

static PyTypeObject *ndx_array_type;
static PyTypeObject *ndx_double_type;
static PyTypeObject *ndx_int_type;
static PyTypeObject *ndx_bool_type;
static PyObject *ndx_truths[2]; /* the numbers False and True */

/* Read an operand into one of the two places; return which one. */
static inline int ndx_read_operand(PyObject *x, int64_t *integer, double *real) {
    PyTypeObject *type = Py_TYPE(x);
    if (type == ndx_double_type) {
        *real = *(double *)NDX_CELL(x);
        return NDX_DOUBLE;
    }
    if (type == ndx_int_type) {
        *integer = *(int64_t *)NDX_CELL(x);
        return NDX_INTEGER;
    }
    if (type == &PyFloat_Type) {
        *real = PyFloat_AS_DOUBLE(x);
        return NDX_DOUBLE;
    }
    if (type == &PyLong_Type) {
        int overflow;
        long long value = ndx_int_value(x, &overflow);
        *integer = (int64_t)value;
        return overflow ? NDX_OTHER : NDX_INTEGER;
    }
    return NDX_OTHER;
}

typedef struct {
    int64_t i, j; /* of two integers */
    double x, y;  /* of all others */
} ndx_operands;

static inline int ndx_read_operands(PyObject *a, PyObject *b, ndx_operands *out) {
    int first, second;
    if (ndx_load(ndx_numbers.reporting)) { return NDX_OTHER; }
    first = ndx_read_operand(a, &out->i, &out->x);
    if (first == NDX_OTHER) { return NDX_OTHER; }
    second = ndx_read_operand(b, &out->j, &out->y);
    if (second == NDX_OTHER) { return NDX_OTHER; }
    if (first == NDX_INTEGER && second == NDX_INTEGER) { return NDX_INTEGER; }
    if (first == NDX_INTEGER) { out->x = (double)out->i; }
    if (second == NDX_INTEGER) { out->y = (double)out->j; }
    return NDX_DOUBLE;
}

static inline PyObject *ndx_number_of_double(double value) {
    PyObject *number = ndx_numbers.blank(ndx_double_type);
    if (number != NULL) { *(double *)NDX_CELL(number) = value; }
    return number;
}

static inline PyObject *ndx_number_of_int(int64_t value) {
    PyObject *number = ndx_numbers.blank(ndx_int_type);
    if (number != NULL) { *(int64_t *)NDX_CELL(number) = value; }
    return number;
}

static inline PyObject *ndx_truth(int value) {
    PyObject *number = ndx_truths[value != 0];
    Py_INCREF(number);
    return number;
}

/* Kind ('i', 'u' or 'f') and bytes of the real types of at most four bytes; else 0. */
typedef struct {
    char kind, itemsize;
} ndx_narrow_type_info;

static ndx_narrow_type_info ndx_narrow_types[NDX_NUMBER_TYPES];

/* The index of a number's type if that is narrow; -1 for all else. */
static inline int ndx_narrow_type(PyObject *x) {
    Py_ssize_t type = Py_TYPE(x) - ndx_number_types;
    int is_narrow = type >= 0 && type < NDX_NUMBER_TYPES && ndx_narrow_types[type].kind;
    return is_narrow ? (int)type : -1;
}

static int64_t ndx_narrow_int(PyObject *x, int type) {
    const char *cell = NDX_CELL(x);
    int is_signed = ndx_narrow_types[type].kind == 'i';
    if (ndx_narrow_types[type].itemsize == 1) {
        return is_signed ? (int64_t)*(const int8_t *)cell
                         : (int64_t)*(const uint8_t *)cell;
    }
    if (ndx_narrow_types[type].itemsize == 2) {
        return is_signed ? (int64_t)*(const int16_t *)cell
                         : (int64_t)*(const uint16_t *)cell;
    }
    /* Cast each: the common type of the two is unsigned. */
    return is_signed ? (int64_t)*(const int32_t *)cell
                     : (int64_t)*(const uint32_t *)cell;
}

/* Whether a narrow type has an integer. */
static int ndx_narrow_has(int64_t value, int type) {
    int bits = 8 * ndx_narrow_types[type].itemsize;
    return ndx_narrow_types[type].kind == 'u' ? value >> bits == 0
                                              : ((value >> (bits - 1)) + 1) >> 1 == 0;
}

/* Read a number, given the narrow type of the other operand or, as -1, none; set whether
 * it is Python's own. */
static int ndx_read_beside(PyObject *x, int64_t *integer, double *real, int *is_pythons) {
    int type = ndx_narrow_type(x);
    *is_pythons = Py_TYPE(x) == &PyLong_Type || Py_TYPE(x) == &PyFloat_Type;
    if (type < 0) { return ndx_read_operand(x, integer, real); }
    if (ndx_narrow_types[type].kind == 'f') {
        *real = *(float *)NDX_CELL(x);
        return NDX_DOUBLE;
    }
    *integer = ndx_narrow_int(x, type);
    return NDX_INTEGER;
}

/* Read numbers, of which one is of a narrow type. The other is of the same, or Python's,
 * which takes that type if it can; or a number of float64 or int64, which decides. Set the
 * narrow type of the result, -1 for float64 or int64. */
static int ndx_read_narrow(PyObject *a, PyObject *b, ndx_operands *out, int *type) {
    int first, second, a_is_pythons, b_is_pythons, is_float;
    int a_type = ndx_narrow_type(a), b_type = ndx_narrow_type(b);
    if ((a_type < 0 && b_type < 0) || ndx_load(ndx_numbers.reporting)
        || (a_type >= 0 && b_type >= 0 && a_type != b_type)) {
        return NDX_OTHER;
    }
    first = ndx_read_beside(a, &out->i, &out->x, &a_is_pythons);
    second = ndx_read_beside(b, &out->j, &out->y, &b_is_pythons);
    if (first == NDX_OTHER || second == NDX_OTHER) { return NDX_OTHER; }
    *type = a_type >= 0 ? a_type : b_type;
    is_float = ndx_narrow_types[*type].kind == 'f';
    if (a_type != b_type && !a_is_pythons && !b_is_pythons) { *type = -1; }
    if (first == NDX_INTEGER && second == NDX_INTEGER) {
        int64_t other = a_is_pythons ? out->i : out->j;
        int is_narrow = *type < 0 || a_type == b_type || ndx_narrow_has(other, *type);
        return is_narrow ? NDX_INTEGER : NDX_OTHER;
    }
    if (first == NDX_INTEGER) { out->x = (double)out->i; }
    if (second == NDX_INTEGER) { out->y = (double)out->j; }
    if (!is_float) { *type = -1; }
    if (*type >= 0 && a_type != b_type) {
        /* Python's number becomes a float32, where no bit of an int is lost before. */
        double *other = a_is_pythons ? &out->x : &out->y;
        if (fabs(*other) > 9007199254740992.0) { return NDX_OTHER; }
        *other = (float)*other;
    }
    return NDX_DOUBLE;
}

static PyObject *ndx_narrow_number(int type, int64_t value) {
    PyObject *number = ndx_numbers.blank(&ndx_number_types[type]);
    if (number == NULL) { return NULL; }
    if (ndx_narrow_types[type].itemsize == 1) {
        *(uint8_t *)NDX_CELL(number) = (uint8_t)value;
    } else if (ndx_narrow_types[type].itemsize == 2) {
        *(uint16_t *)NDX_CELL(number) = (uint16_t)value;
    } else {
        *(uint32_t *)NDX_CELL(number) = (uint32_t)value;
    }
    return number;
}

static PyObject *ndx_number_of_float(int type, float value) {
    PyObject *number = ndx_numbers.blank(&ndx_number_types[type]);
    if (number != NULL) { *(float *)NDX_CELL(number) = value; }
    return number;
}

#define NDX_NARROW(op)                                                                   \
    {                                                                                    \
        int type = -1;                                                                   \
        kind = ndx_read_narrow(a, b, &o, &type);                                         \
        if (kind == NDX_INTEGER) {                                                       \
            int64_t value = (int64_t)((uint64_t)o.i op (uint64_t)o.j);                   \
            return type < 0 ? ndx_number_of_int(value) : ndx_narrow_number(type, value); \
        }                                                                                \
        if (kind == NDX_DOUBLE) {                                                        \
            return type < 0 ? ndx_number_of_double(o.x op o.y)                           \
                            : ndx_number_of_float(type, (float)o.x op(float) o.y);       \
        }                                                                                \
    }

#if defined(__GNUC__)
#define NDX_NOINLINE __attribute__((noinline))
#else
#define NDX_NOINLINE
#endif

/* Integers wrap, as in NumPy's loops. With an array as an operand, the array's slot is
 * called last of all, so that it sees the interpreter as its caller (callers.h). */
#define NDX_BINARY(name, slot, of_ints, of_doubles, of_narrow)                                    \
    static NDX_NOINLINE PyObject *ndx_compute_##name(PyObject *a, PyObject *b) {          \
        ndx_operands o = {0, 0, 0.0, 0.0};                                               \
        int kind = ndx_read_operands(a, b, &o);                                          \
        if (kind == NDX_INTEGER) { return of_ints; }                                     \
        if (kind == NDX_DOUBLE) { return of_doubles; }                                   \
        of_narrow                                                                        \
        return ndx_array_type->tp_as_number->slot(a, b);                                 \
    }                                                                                    \
    static PyObject *ndx_number_##name(PyObject *a, PyObject *b) {                        \
        if (Py_TYPE(a) == ndx_array_type || Py_TYPE(b) == ndx_array_type) {              \
            return ndx_array_type->tp_as_number->slot(a, b);                             \
        }                                                                                \
        return ndx_compute_##name(a, b);                                                 \
    }
#define NDX_WRAPPED(op) ndx_number_of_int((int64_t)((uint64_t)o.i op (uint64_t)o.j))
#define NDX_OTHERWISE(slot) ndx_array_type->tp_as_number->slot(a, b)
/* NumPy's loop decides on division by zero, and where the quotient is 2**63. */
#define NDX_DIVIDES(o) ((o).j > 0 || (o).j < -1)

static inline int64_t ndx_floor_quotient(int64_t i, int64_t j) {
    int64_t quotient = i / j;
    return quotient - (i % j != 0 && (i < 0) != (j < 0));
}

/* As NumPy's scalars: the quotient of an infinity is NaN. */
static inline double ndx_floor_quotient_of_doubles(double x, double y) {
    double rest, quotient, whole;
    if (y == 0) { return x / y; }
    rest = fmod(x, y);
    quotient = (x - rest) / y;
    if (rest != 0 && (y < 0) != (rest < 0)) { quotient -= 1; }
    if (quotient == 0) { return copysign(0.0, x / y); }
    whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

NDX_BINARY(add, nb_add, NDX_WRAPPED(+), ndx_number_of_double(o.x + o.y), NDX_NARROW(+))
NDX_BINARY(subtract, nb_subtract, NDX_WRAPPED(-), ndx_number_of_double(o.x - o.y),
           NDX_NARROW(-))
NDX_BINARY(multiply, nb_multiply, NDX_WRAPPED(*), ndx_number_of_double(o.x * o.y),
           NDX_NARROW(*))
NDX_BINARY(divide, nb_true_divide, ndx_number_of_double((double)o.i / (double)o.j),
           ndx_number_of_double(o.x / o.y), )
NDX_BINARY(floor_divide, nb_floor_divide,
           NDX_DIVIDES(o) ? ndx_number_of_int(ndx_floor_quotient(o.i, o.j))
                          : NDX_OTHERWISE(nb_floor_divide),
           ndx_number_of_double(ndx_floor_quotient_of_doubles(o.x, o.y)), )
NDX_BINARY(remainder, nb_remainder,
           NDX_DIVIDES(o)
               ? ndx_number_of_int(o.i - o.j * ndx_floor_quotient(o.i, o.j))
               : NDX_OTHERWISE(nb_remainder),
           NDX_OTHERWISE(nb_remainder), )
NDX_BINARY(and, nb_and, ndx_number_of_int(o.i & o.j), NDX_OTHERWISE(nb_and), )
NDX_BINARY(or, nb_or, ndx_number_of_int(o.i | o.j), NDX_OTHERWISE(nb_or), )
NDX_BINARY(xor, nb_xor, ndx_number_of_int(o.i ^ o.j), NDX_OTHERWISE(nb_xor), )

/* By the C library, as NumPy's float64 does: loops may differ by an ulp. NumPy's int64
 * leaves powers of floats to its loop. */
static PyObject *ndx_number_power(PyObject *a, PyObject *b, PyObject *modulo) {
    ndx_operands o = {0, 0, 0.0, 0.0};
    int by_double = Py_TYPE(a) == ndx_double_type
        || (Py_TYPE(b) == ndx_double_type && Py_TYPE(a) != ndx_int_type);
    if (by_double && modulo == Py_None && ndx_read_operands(a, b, &o) == NDX_DOUBLE) {
        return ndx_number_of_double(pow(o.x, o.y));
    }
    return ndx_array_type->tp_as_number->nb_power(a, b, modulo);
}

#define NDX_COMPARED(x, y, op)                                                           \
    ((op) == Py_EQ ? (x) == (y) : (op) == Py_NE ? (x) != (y) : (op) == Py_LT ? (x) < (y)  \
     : (op) == Py_LE ? (x) <= (y) : (op) == Py_GT ? (x) > (y) : (x) >= (y))

static PyObject *ndx_number_compare(PyObject *a, PyObject *b, int op) {
    ndx_operands o = {0, 0, 0.0, 0.0};
    int kind = ndx_read_operands(a, b, &o), type = -1;
    if (kind == NDX_OTHER) { kind = ndx_read_narrow(a, b, &o, &type); }
    if (kind == NDX_INTEGER) { return ndx_truth(NDX_COMPARED(o.i, o.j, op)); }
    if (kind == NDX_DOUBLE) { return ndx_truth(NDX_COMPARED(o.x, o.y, op)); }
    return ndx_array_type->tp_richcompare(a, b, op);
}

static PyObject *ndx_number_negative(PyObject *a) {
    if (Py_TYPE(a) == ndx_double_type) {
        return ndx_number_of_double(-*(double *)NDX_CELL(a));
    }
    if (Py_TYPE(a) == ndx_int_type) {
        return ndx_number_of_int((int64_t)(0 - *(uint64_t *)NDX_CELL(a)));
    }
    return ndx_array_type->tp_as_number->nb_negative(a);
}

static PyObject *ndx_number_absolute(PyObject *a) {
    if (Py_TYPE(a) == ndx_double_type) {
        return ndx_number_of_double(fabs(*(double *)NDX_CELL(a)));
    }
    if (Py_TYPE(a) == ndx_int_type && *(int64_t *)NDX_CELL(a) >= 0) {
        Py_INCREF(a);
        return a;
    }
    return ndx_array_type->tp_as_number->nb_absolute(a);
}

static int ndx_number_bool(PyObject *a) {
    if (Py_TYPE(a) == ndx_bool_type) { return *NDX_CELL(a) != 0; }
    if (Py_TYPE(a) == ndx_double_type) { return *(double *)NDX_CELL(a) != 0; }
    if (Py_TYPE(a) == ndx_int_type) { return *(int64_t *)NDX_CELL(a) != 0; }
    return ndx_array_type->tp_as_number->nb_bool(a);
}

static PyObject *ndx_number_float(PyObject *a) {
    if (Py_TYPE(a) == ndx_double_type) {
        return PyFloat_FromDouble(*(double *)NDX_CELL(a));
    }
    return ndx_array_type->tp_as_number->nb_float(a);
}

static PyObject *ndx_number_int(PyObject *a) {
    if (Py_TYPE(a) == ndx_int_type) {
        return PyLong_FromLongLong(*(int64_t *)NDX_CELL(a));
    }
    if (Py_TYPE(a) == ndx_double_type) {
        return PyLong_FromDouble(*(double *)NDX_CELL(a));
    }
    return ndx_array_type->tp_as_number->nb_int(a);
}

static PyObject *ndx_number_index(PyObject *a) {
    if (Py_TYPE(a) == ndx_int_type) {
        return PyLong_FromLongLong(*(int64_t *)NDX_CELL(a));
    }
    return ndx_array_type->tp_as_number->nb_index(a);
}

static PyObject *ndx_number_str(PyObject *a) {
    if (Py_TYPE(a) == ndx_double_type) { return PyFloat_Type.tp_repr(a); }
    return ndx_array_type->tp_str(a);
}

static Py_hash_t ndx_number_hash(PyObject *a) {
    if (Py_TYPE(a) == ndx_double_type) { return PyFloat_Type.tp_hash(a); }
    return ndx_numbers.hash(a);
}

/* Set the slots of a type of numbers that compute here. */
static void ndx_set_arithmetic(PyTypeObject *type) {
    PyNumberMethods *methods = type->tp_as_number;
    methods->nb_add = ndx_number_add;
    methods->nb_subtract = ndx_number_subtract;
    methods->nb_multiply = ndx_number_multiply;
    methods->nb_true_divide = ndx_number_divide;
    methods->nb_floor_divide = ndx_number_floor_divide;
    methods->nb_remainder = ndx_number_remainder;
    methods->nb_and = ndx_number_and;
    methods->nb_or = ndx_number_or;
    methods->nb_xor = ndx_number_xor;
    methods->nb_negative = ndx_number_negative;
    methods->nb_absolute = ndx_number_absolute;
    methods->nb_power = ndx_number_power;
    methods->nb_bool = ndx_number_bool;
    methods->nb_float = ndx_number_float;
    methods->nb_int = ndx_number_int;
    if (methods->nb_index != NULL) { methods->nb_index = ndx_number_index; }
    type->tp_richcompare = ndx_number_compare;
    type->tp_hash = ndx_number_hash;
    type->tp_str = ndx_number_str;
}

#endif
