#include "plain.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "plain_cpp", NULL, -1, methods, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit_plain_cpp(void) { return PyModule_Create(&definition); }
