/* C code that holds the one reference to an array while operators use it. */
#include <Python.h>

typedef struct {
    PyObject_HEAD
    PyObject *held;
} Holder;

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    Holder *self = (Holder *)type->tp_alloc(type, 0);
    if (self != NULL && !PyArg_ParseTuple(args, "O:Holder", &self->held)) {
        Py_DECREF(self);
        return NULL;
    }
    if (self != NULL) Py_INCREF(self->held);
    return (PyObject *)self;
}

static void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((Holder *)self)->held);
    type->tp_free(self);
    Py_DECREF(type);
}

/* These end with a jump to the operator, so that no return address shows them. */
static PyObject *add(PyObject *self, PyObject *other) {
    return PyNumber_Add(((Holder *)self)->held, other);
}

static PyObject *negate(PyObject *self) {
    return PyNumber_Negative(((Holder *)self)->held);
}

static PyObject *plus(PyObject *self, PyObject *other) {
    return PyNumber_Add(((Holder *)self)->held, other);
}

/* The held array as it is, and the references to it. */
static PyObject *held(PyObject *self, PyObject *unused) {
    PyObject *x = ((Holder *)self)->held;
    return Py_BuildValue("On", x, (Py_ssize_t)Py_REFCNT(x));
}

static PyMethodDef methods[] = {
    {"plus", plus, METH_O, NULL},
    {"held", held, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)new},   {Py_tp_dealloc, (void *)dealloc},
    {Py_nb_add, (void *)add},   {Py_nb_negative, (void *)negate},
    {Py_tp_methods, methods},   {0, NULL},
};

static PyType_Spec spec = {"holder.Holder", sizeof(Holder), 0, Py_TPFLAGS_DEFAULT, slots};

/* Return (x * 2, x * 2 + y), of which the first is used by C alone until then. */
static PyObject *twice_and_more(PyObject *module, PyObject *args) {
    PyObject *x, *y, *two, *twice, *more = NULL;
    if (!PyArg_ParseTuple(args, "OO", &x, &y)) return NULL;
    two = PyLong_FromLong(2);
    twice = two == NULL ? NULL : PyNumber_Multiply(x, two);
    Py_XDECREF(two);
    if (twice != NULL) more = PyNumber_Add(twice, y);
    if (more == NULL) {
        Py_XDECREF(twice);
        return NULL;
    }
    return Py_BuildValue("NN", twice, more);
}

static PyMethodDef functions[] = {
    {"twice_and_more", twice_and_more, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "holder", NULL, -1, functions};

PyMODINIT_FUNC PyInit_holder(void) {
    PyObject *made = PyModule_Create(&module);
    PyObject *type = made == NULL ? NULL : PyType_FromSpec(&spec);
    if (type == NULL || PyModule_AddObject(made, "Holder", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
