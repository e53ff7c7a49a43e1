"""Build the extensions: every ``ndx/**/*.pyx``, all with the same directives.

Environment switches (each combination builds in its own folder under ``build/``):
``NDX_SANITIZE=address,undefined`` debug build, ``NDX_TRACE=1`` line tracing (coverage),
``NDX_ANNOTATE=1`` HTML beside the C, ``NDX_BUILD_EXT=0`` no extension at all,
``NDX_DEBUG_INFO=-g`` debug information (none by default: 80 % of a wheel).
"""

import multiprocessing
import os
import sys
import sysconfig
import zlib
from pathlib import Path

import Cython
import numpy as np
from Cython.Build import cythonize
from Cython.Compiler import Options
from Cython.Compiler.ParseTreeTransforms import InterpretCompilerDirectives
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SANITIZE = os.environ.get("NDX_SANITIZE", "")
TRACE = os.environ.get("NDX_TRACE") == "1"
ANNOTATE = os.environ.get("NDX_ANNOTATE") == "1"
JOBS, DEBUG = os.cpu_count() or 1, os.environ.get("NDX_DEBUG_INFO", "-g0")
DIRECTIVES = {
    "language_level": 3, "binding": True, "embedsignature": False, "auto_pickle": False,
    "boundscheck": True, "wraparound": False, "initializedcheck": False,  # of tuples
    "cdivision": True, "linetrace": TRACE, "annotation_typing": False,  # for stubs
    "warn.maybe_uninitialized": True, "warn.unreachable": True, "warn.unused": True,
}  # fmt: skip
Options.warning_errors = True
# Methods of `cdef class` are CPython's descriptors, which check `self`. Cython's own
# functions ("binding") do not, so that `NDArray.sum(5)` would read an int's memory.
OF_CLASSES = {"binding": False, "embedsignature": True,
              "embedsignature.format": "clinic"}  # fmt: skip


def visit_class(self, node):
    """Compile a `cdef class` with its own directives, and with those above."""
    own, of_body = self._extract_directives(node, "cclass")
    return self.visit_with_directives(node, own | OF_CLASSES, of_body | OF_CLASSES)


assert InterpretCompilerDirectives.visit_CClassDefNode
InterpretCompilerDirectives.visit_CClassDefNode = visit_class
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
          ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")]  # fmt: skip
CFLAGS, LDFLAGS = [], []
if os.name == "posix":  # IEEE as written; the -Wno are what Cython generates on purpose
    CFLAGS += ["-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-Wno-unused-parameter",
               "-Wno-unused-function", "-Wno-sign-compare", "-Wno-cast-function-type",
               "-Wno-missing-field-initializers", DEBUG]  # fmt: skip
if SANITIZE:
    LDFLAGS += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=undefined"]
    CFLAGS += ["-O1", "-g", "-UNDEBUG", "-fno-omit-frame-pointer", *LDFLAGS]
    MACROS += [("NDX_CHECKED", "1")]  # assertions on memory: ndx/include/ndx/checked.h
MACROS += [("CYTHON_TRACE_NOGIL", "1")] * TRACE

# File times don't show a change of these, so each combination has its own folder.
INPUTS = (Path(__file__).read_text(), Cython.__version__, np.__version__, SANITIZE,
          TRACE, ANNOTATE, sysconfig.get_config_var("EXT_SUFFIX"), CFLAGS)  # fmt: skip
KIND = "-sanitize" * bool(SANITIZE) + "-trace" * TRACE + "-annotate" * ANNOTATE
KEY = f"{sys.implementation.cache_tag}{KIND}-{zlib.crc32(repr(INPUTS).encode()):08x}"


class CythonizeFirst(build_ext):
    """Translate as a part of the build, so that metadata and sdist need no C."""

    def build_extensions(self):
        """Replace each extension's ``.pyx`` by its C file, then compile."""
        if sys.platform == "linux":  # the workers must inherit `warning_errors`
            multiprocessing.set_start_method("fork", force=True)
        made = cythonize([*self.extensions], build_dir=f"build/cython/{KEY}",
                         nthreads=JOBS if sys.platform == "linux" else 0,
                         annotate=ANNOTATE, compiler_directives=DIRECTIVES)  # fmt: skip
        sources = {extension.name: extension.sources for extension in made}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        super().build_extensions()


C_FILES = {"mapping": ["ndx/_files/mappings.c"], "threads": ["ndx/_compute/pool.c"]}
HEADERS = [p.as_posix() for p in sorted(Path("ndx").rglob("*.h"))]
setup(
    cmdclass={"build_ext": CythonizeFirst},
    options={"build": {"build_base": f"build/{KEY}"}, "build_ext": {"parallel": JOBS}},
    ext_modules=[
        Extension(".".join(p.with_suffix("").parts),
                  [p.as_posix(), *C_FILES.get(p.stem, ())], define_macros=MACROS,
                  depends=HEADERS, include_dirs=[".", "ndx/include", np.get_include()],
                  extra_compile_args=CFLAGS, extra_link_args=LDFLAGS)
        for p in sorted(Path("ndx").rglob("*.pyx"))
        if os.environ.get("NDX_BUILD_EXT") != "0"
    ],
)  # fmt: skip
