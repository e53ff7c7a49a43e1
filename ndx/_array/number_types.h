/* The types of numbers: subclasses of the array type, one for each dtype.
 *
 * A number keeps its element in the first field of the array's struct (`dims`). That is
 * where Python's float and complex, and NumPy's scalars, keep theirs. So the number
 * types of float64 and complex128 have float and complex as a second base, as NumPy's
 * float64 and complex128 do: code that asks `PyFloat_Check` reads the element.
 *
 * Types with two bases of built-in layouts can't be declared in Cython. Here they are
 * made as NumPy makes its own: static types, whose bases are set before PyType_Ready. */
#ifndef NDX_NUMBER_TYPES_H
#define NDX_NUMBER_TYPES_H

#include <Python.h>
#include <string.h>

#define NDX_NUMBER_TYPES 16

static PyTypeObject ndx_number_types[NDX_NUMBER_TYPES];
static PyNumberMethods ndx_number_methods[NDX_NUMBER_TYPES];
static PySequenceMethods ndx_number_sequence[NDX_NUMBER_TYPES];
static PyMappingMethods ndx_number_mapping[NDX_NUMBER_TYPES];
static PyObject *ndx_scalar_classes[NDX_NUMBER_TYPES]; /* NumPy's, by dtype */

/* What a higher layer knows of numbers. */
typedef struct {
    Py_hash_t (*hash)(PyObject *number);
    PyObject *(*make)(int dtype, PyObject *args, PyObject *kwargs);
    PyObject *(*attribute)(PyObject *number, PyObject *name);
    PyObject *(*blank)(PyTypeObject *type); /* a number without an element yet */
    const int *reporting;                   /* not 0: NumPy's errors are asked for */
} ndx_number_functions;

static ndx_number_functions ndx_numbers;

static PyObject *ndx_number_class(PyObject *self, void *unused) {
    PyObject *cls = ndx_scalar_classes[Py_TYPE(self) - ndx_number_types];
    (void)unused;
    Py_INCREF(cls);
    return cls;
}

static PyGetSetDef ndx_number_attributes[] = {
    {"__class__", ndx_number_class, NULL,
     "NumPy's class of such numbers, for isinstance(x, numpy.floating) and the like.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* The types of numbers are equal to NumPy's scalar classes, and name their dtype, so that
 * `type(x[0]) == numpy.float64`, tables by class, and `numpy.dtype(type(x[0]))` answer as
 * for NumPy's scalars. */
static PyTypeObject ndx_number_meta;

static PyObject *ndx_scalar_class_of(PyObject *cls) {
    return Py_TYPE(cls) == &ndx_number_meta
               ? ndx_scalar_classes[(PyTypeObject *)cls - ndx_number_types]
               : cls;
}

static PyObject *ndx_number_type_compare(PyObject *a, PyObject *b, int op) {
    int equal = ndx_scalar_class_of(a) == ndx_scalar_class_of(b);
    if (op != Py_EQ && op != Py_NE) { Py_RETURN_NOTIMPLEMENTED; }
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t ndx_number_type_hash(PyObject *cls) {
    return PyObject_Hash(ndx_scalar_class_of(cls));
}

static PyObject *ndx_number_type_dtype(PyObject *cls, void *unused) {
    PyObject *module = PyImport_ImportModule("numpy"), *result;
    (void)unused;
    if (module == NULL) { return NULL; }
    result = PyObject_CallMethod(module, "dtype", "O", ndx_scalar_class_of(cls));
    Py_DECREF(module);
    return result;
}

static PyGetSetDef ndx_number_type_attributes[] = {
    {"dtype", ndx_number_type_dtype, NULL, "The dtype of the numbers.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject ndx_number_meta = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "ndx._core.NumberType",
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_richcompare = ndx_number_type_compare,
    .tp_hash = ndx_number_type_hash,
    .tp_getset = ndx_number_type_attributes,
};

static PyObject *ndx_number_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs) {
    return ndx_numbers.make((int)(cls - ndx_number_types), args, kwargs);
}

/* Numbers have the attributes of arrays, and then those of NumPy's scalars. */
static PyObject *ndx_number_getattro(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) { return found; }
    PyErr_Clear();
    return ndx_numbers.attribute(self, name);
}

/* The subclass for a dtype. In-place operators have no slots: `x += 1` binds a new
 * number, as for all immutable types. A number has no length, and is no iterable.
 * `also` is a built-in base, or NULL. */
static int ndx_make_number_type(int dtype, PyTypeObject *array_type, const char *name,
                                const char *doc, PyTypeObject *also,
                                PyObject *scalar_class, int is_index) {
    PyTypeObject *type = &ndx_number_types[dtype];
    PyNumberMethods *methods = &ndx_number_methods[dtype];
    if (ndx_number_meta.tp_base == NULL) {
        ndx_number_meta.tp_base = &PyType_Type;
        if (PyType_Ready(&ndx_number_meta) < 0) { return -1; }
    }
    Py_INCREF(scalar_class);
    ndx_scalar_classes[dtype] = scalar_class; /* by which the type has a hash */
    memset(type, 0, sizeof(*type));
    Py_SET_REFCNT((PyObject *)type, 1);
    type->tp_name = name;
    type->tp_doc = doc;
    type->tp_basicsize = array_type->tp_basicsize;
    type->tp_flags = Py_TPFLAGS_DEFAULT;
    type->tp_as_number = methods;
    type->tp_richcompare = array_type->tp_richcompare;
    type->tp_hash = PyObject_HashNotImplemented; /* until `ndx_set_arithmetic` */
    type->tp_new = ndx_number_new;
    type->tp_getattro = ndx_number_getattro;
    type->tp_repr = array_type->tp_repr;
    type->tp_str = array_type->tp_str;
    type->tp_getset = ndx_number_attributes;
    type->tp_base = array_type;
    type->tp_bases = also == NULL ? PyTuple_Pack(1, array_type)
                                  : PyTuple_Pack(2, array_type, also);
    type->tp_as_sequence = &ndx_number_sequence[dtype];
    type->tp_as_mapping = &ndx_number_mapping[dtype];
    type->tp_dict = PyDict_New();
    if (type->tp_bases == NULL || type->tp_dict == NULL
        || PyDict_SetItemString(type->tp_dict, "__len__", Py_None) < 0
        || PyDict_SetItemString(type->tp_dict, "__iter__", Py_None) < 0
        || PyDict_SetItemString(type->tp_dict, "__contains__", Py_None) < 0
        || PyType_Ready(type) < 0) {
        return -1;
    }
    /* Not before: of a type whose own type is another, CPython checks the bases. */
    Py_SET_TYPE((PyObject *)type, &ndx_number_meta);
    memset(type->tp_as_sequence, 0, sizeof(PySequenceMethods));
    type->tp_as_mapping->mp_length = NULL;
    type->tp_iter = NULL;
    methods->nb_inplace_add = methods->nb_inplace_subtract = NULL;
    methods->nb_inplace_multiply = methods->nb_inplace_remainder = NULL;
    methods->nb_inplace_lshift = methods->nb_inplace_rshift = NULL;
    methods->nb_inplace_and = methods->nb_inplace_xor = methods->nb_inplace_or = NULL;
    methods->nb_inplace_floor_divide = methods->nb_inplace_true_divide = NULL;
    methods->nb_inplace_matrix_multiply = NULL;
    methods->nb_inplace_power = NULL;
    if (!is_index) { methods->nb_index = NULL; }
    return 0;
}

#endif
