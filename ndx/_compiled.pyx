"""The loader of ndx's compiled modules, which are all in one shared library.

Each module is compiled by itself; the build links them to one library, of which this
module is a part, and writes their list, ``modules.h``. To find, open and bind 110
libraries, one for each module, would take a third of the import.

References
----------
PEP 489, multi-phase initialisation: https://peps.python.org/pep-0489/
"""

from cpython.object cimport PyObject

import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from os.path import isfile

cdef extern from "Python.h":
    ctypedef struct PyModuleDef:
        pass
    object PyModule_FromDefAndSpec(PyModuleDef *definition, object spec)
    PyModuleDef *PyModule_GetDef(object module) except NULL
    int PyModule_ExecDef(object module, PyModuleDef *definition) except -1

cdef extern from *:
    """
    #define MODULE(name, initialise) PyMODINIT_FUNC initialise(void);
    #include "modules.h"
    #undef MODULE
    #define MODULE(name, initialise) {name, initialise},
    static const struct {
        const char *name;
        PyObject *(*initialise)(void);
    } ndx_modules[] = {
    #include "modules.h"
        {NULL, NULL},
    };
    #undef MODULE
    """
    ctypedef PyObject *(*Initialise)() except NULL
    ctypedef struct Module:
        const char *name
        Initialise initialise
    const Module *ndx_modules

# Name of each module -> its place in the list.
PLACES = {}
while ndx_modules[len(PLACES)].name != NULL:
    PLACES[ndx_modules[len(PLACES)].name.decode()] = len(PLACES)


class Modules:
    """Finds the modules of ndx, and loads the compiled ones."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return the spec of a module of ndx that is compiled, or private; else None.

        Python finds the private ones in Python, too, but lists each folder for that.
        """
        if name not in PLACES:
            if name.startswith("ndx.") and "._" in name and type(path) is list:
                return spec_in(path[0], name)
            return None
        spec = ModuleSpec(name, Modules, origin=__file__)
        spec.has_location = True
        return spec

    @staticmethod
    def create_module(spec):
        """Return the module of a spec, before its code has run."""
        definition = <PyModuleDef *>ndx_modules[<Py_ssize_t>PLACES[spec.name]] \
            .initialise()
        return PyModule_FromDefAndSpec(definition, spec)

    @staticmethod
    def exec_module(module):
        """Run the code of a module."""
        PyModule_ExecDef(module, PyModule_GetDef(module))


def spec_in(folder, name):
    """Return the spec of a module or package in a folder; None if it is not there."""
    start = f"{folder}/{name.rpartition('.')[2]}"
    if isfile(start + ".py"):
        start, package = start + ".py", None
    else:
        start, package = start + "/__init__.py", [start]
        if not isfile(start):
            return None
    return spec_from_file_location(name, start, submodule_search_locations=package,
                                   loader=SourceFileLoader(name, start))


def register():
    """Let Python find the modules of the library, before it looks for files."""
    if Modules not in sys.meta_path:
        sys.meta_path.insert(0, Modules)
