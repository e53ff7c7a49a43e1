#include "plain.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "plain", NULL, -1, methods, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit_plain(void) { return PyModule_Create(&definition); }
