"""Build the extension: every ``ndx/**/*.pyx``, in one library, `ndx._compiled`.

Environment switches (each combination builds in its own folder under ``build/``):
``NDX_SANITIZE=address,undefined`` debug build, ``NDX_TRACE=1`` line tracing (coverage),
``NDX_ANNOTATE=1`` HTML beside the C, ``NDX_BUILD_EXT=0`` no extension at all,
``NDX_DEBUG_INFO=-g`` debug information (none by default: 80 % of a wheel).
"""

import gc
import multiprocessing
import os
import shlex
import subprocess
import sys
import sysconfig
import zlib
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

import Cython
import numpy as np
from Cython.Build import cythonize
from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent / "tools"))

import make_methods
import make_stubs

SANITIZE = os.environ.get("NDX_SANITIZE", "")
TRACE = os.environ.get("NDX_TRACE") == "1"
ANNOTATE = os.environ.get("NDX_ANNOTATE") == "1"
JOBS = os.cpu_count() or 1
DIRECTIVES = {
    "language_level": 3,
    "auto_pickle": False,
    "freethreading_compatible": True,  # docs/architecture.md, "Without the GIL"
    # Methods of a `cdef class` are CPython's descriptors, which check `self`: the class
    # says "binding(False)". Cython's own functions do not, so that `NDArray.sum(5)`
    # would read an int's memory.
    "binding": True,
    "embedsignature": False,
    "embedsignature.format": "clinic",
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "annotation_typing": False,  # annotations are for the stubs
    "linetrace": TRACE,
    "warn.maybe_uninitialized": True,
    "warn.unreachable": True,
    "warn.unused": True,
}
Options.warning_errors = True
# The oldest of NumPy's C APIs that has what is called: a build with any NumPy 2 serves
# all of them, of which pyproject.toml names the oldest.
MACROS = [
    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
    ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
]
# A quicker one: `ndx/_lib/module_lookup.c`.
MACROS += [("PyImport_ImportModule", "ndx_import_module")]


def understands(flags):
    """Whether the C compiler knows some flags."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC")
    if os.name != "posix" or not compiler:
        return False
    command = [*shlex.split(compiler), *flags, "-x", "c", "-E", os.devnull]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


CFLAGS, LDFLAGS = [], []
if os.name == "posix":
    CFLAGS += [
        "-ffp-contract=off",  # IEEE as written
        os.environ.get("NDX_DEBUG_INFO", "-g0"),
        "-MD",  # for `is_current`
    ]
# GCC copies a few axes, whose number it knows to be at most 64, by instructions that
# take 20 ns to start. A loop takes 2.
FEW = [
    f"-m{name}-strategy=unrolled_loop:1024:noalign,libcall:-1:noalign"
    for name in ("memcpy", "memset")
]
if understands(FEW):
    CFLAGS += FEW
# A short loop that crosses a line of decoded instructions takes up to twice as long.
LOOPS = ["-falign-loops=32"]
if not understands(LOOPS):
    LOOPS = []
# Three quarters of the time of a build are the C compiler's, which takes twice as long
# for -O3 as for -O1. Modules whose C code is a small part of the time of any operation
# gain nothing by -O3 (measured). These are the others: the ways of small operations,
# and loops over elements. (-O2 without its slowest passes makes x + y slower.)
HOT = [
    "ndx._api.creation*", "ndx._api.indexing", "ndx._api.public_function",
    "ndx._array.*", "ndx._arenas.arena", "ndx._blocks.*", "ndx._compute.[!glnp]*",
    "ndx._compute.loops", "ndx._context.context", "ndx._context.scopes", "ndx._core",
    "ndx._fusing.replay", "ndx._lib.dtypes", "ndx._lib.layout", "ndx._methods.exports",
    "ndx._methods.indexing", "ndx._methods.method_rows", "ndx._methods.numpy_dispatch",
    "ndx._methods.numpy_function_table", "ndx._methods.operators",
    "ndx._methods.selection", "ndx._methods.ufuncs", "ndx._methods.values",
    "ndx._numpy.*functions", "ndx._numpy.order_statistics", "ndx._numpy.wrappers",
    "ndx._shared", "ndx.backends._pool.pool", "ndx.backends._pool.store",
    "ndx.backends.base", "ndx.backends.host", "ndx.backends.pooled",
]  # fmt: skip
# Warnings are of the sanitizers' build: to look for them takes a tenth of the time.
WARNINGS = ["-w"]
if SANITIZE:
    LDFLAGS += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=undefined"]
    CFLAGS += ["-g", "-UNDEBUG", "-fno-omit-frame-pointer", *LDFLAGS]
    HOT = []
    WARNINGS = [  # the -Wno are what Cython generates on purpose
        "-Wall",
        "-Wextra",
        "-Wno-unused-parameter",
        "-Wno-unused-function",
        "-Wno-sign-compare",
        "-Wno-cast-function-type",
        "-Wno-missing-field-initializers",
    ]
    MACROS += [
        ("NDX_CHECKED", "1")
    ]  # assertions on memory: ndx/include/ndx/internal/checked.h
if TRACE:
    MACROS += [("CYTHON_TRACE_NOGIL", "1")]

# What most modules need of Cython's own code (the type of functions, keywords), once.
SHARED = "ndx._shared"

# File times don't show a change of these, so each combination has its own folder.
INPUTS = (
    DIRECTIVES, SHARED, MACROS, CFLAGS, LOOPS, HOT, WARNINGS, ANNOTATE,
    Cython.__version__, np.__version__, sysconfig.get_config_var("EXT_SUFFIX"),
)  # fmt: skip
KIND = "-sanitize" * bool(SANITIZE) + "-trace" * TRACE + "-annotate" * ANNOTATE
KEY = f"{sys.implementation.cache_tag}{KIND}-{zlib.crc32(repr(INPUTS).encode()):08x}"
CYTHON = Path("build/cython", KEY)
C_FILES = [
    "ndx/_compute/thread_pool.c",
    "ndx/_files/mappings.c",
    "ndx/_lib/module_lookup.c",
    "ndx/backends/_pool/idle_thread.c",
]


class GenerateFirst(build):
    """Write the stubs before the files of the package are collected."""

    def run(self):
        """Build the package."""
        make_stubs.write()
        super().run()


class BuildModules(build_ext):
    """Translate and compile each module that has changed, and link the library."""

    def run(self):
        """Build the library, and write the stubs of its modules."""
        make_stubs.write()
        super().run()

    def build_extension(self, ext):
        """Build the library; `ext.sources` are all its sources."""
        modules = {
            ".".join(Path(source).with_suffix("").parts): source
            for source in ext.sources
            if source.endswith(".pyx")
        }
        if sys.platform == "linux":  # the workers must inherit `warning_errors`
            multiprocessing.set_start_method("fork", force=True)
        # Cython's trees are large, and Python's collector walks all of them too often.
        gc.set_threshold(100_000, 50, 100)
        # The loader is run before any other module can be found.
        made = translate([Extension(ext.name, [modules.pop(ext.name)])])
        made += translate(
            [
                Extension(SHARED, []),
                *(Extension(name, [source]) for name, source in modules.items()),
            ],
            shared_utility_qualified_name=SHARED,
        )
        write_list([each.name for each in made if each.name != ext.name])
        sources = [(each.sources[0], initialise(each.name)) for each in made]
        with ThreadPoolExecutor(JOBS) as pool:
            objects = list(
                pool.map(
                    lambda given: self.compile(ext, *given),
                    [*sources, *((source, None) for source in C_FILES)],
                )
            )
        library = self.get_ext_fullpath(ext.name)
        if self.force or not is_newer(library, objects):
            self.compiler.link_shared_object(
                objects, library, extra_postargs=LDFLAGS, build_temp=self.build_temp
            )

    def compile(self, ext, source, function):
        """Compile a C file if its object is out of date; return the object."""
        (made,) = self.compiler.object_filenames([source], output_dir=self.build_temp)
        if self.force or not is_current(made):
            stem = Path(source).stem
            named = [] if function is None else [(f"PyInit_{stem}", function)]
            self.compiler.compile(
                [source],
                output_dir=self.build_temp,
                macros=ext.define_macros + named,
                include_dirs=ext.include_dirs,
                extra_postargs=CFLAGS + flags_for(source),
            )
        return made

    def get_export_symbols(self, ext):
        """Return no symbols: the C says what is exported."""
        return ext.export_symbols


def translate(extensions, **options):
    """Translate modules to C; return them as extensions of the C files."""
    return cythonize(
        extensions,
        build_dir=str(CYTHON),
        include_path=["."],
        nthreads=JOBS if sys.platform == "linux" else 0,
        annotate=ANNOTATE,
        compiler_directives=DIRECTIVES,
        **options,
    )


def flags_for(source):
    """Return the level of optimisation and the warnings of a C file, as flags."""
    if os.name != "posix":
        return []
    place = Path(source).with_suffix("")
    name = ".".join(place.parts[place.parts.index("ndx") :])
    hot = any(fnmatchcase(name, each) for each in HOT)
    return [*(["-O3", *LOOPS] if hot else ["-O1"]), *WARNINGS]


def initialise(name):
    """Return the name of the C function that initialises a module.

    Cython calls it by the last part of the module's name, which is not unique. Python
    looks for the library's own by that name.
    """
    short = name.rpartition(".")[2]
    return (
        f"PyInit_{short}" if short == "_compiled" else "ndx_" + name.replace(".", "__")
    )


def write_list(names):
    """Write the list of modules, if it is another one, for ``ndx/_compiled.pyx``."""
    path = CYTHON / "modules.h"
    text = "".join(f'MODULE("{name}", {initialise(name)})\n' for name in names)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def is_current(target):
    """Whether an object is newer than what its ``.d`` file says it was made from."""
    try:
        rule = Path(target).with_suffix(".d").read_text().replace("\\\n", " ")
    except OSError:  # not compiled yet, or by a compiler that writes none
        return False
    return is_newer(target, rule.partition(": ")[2].split())


def is_newer(target, sources):
    """Whether a file exists and is newer than others."""
    try:
        made = os.stat(target).st_mtime_ns
        return all(os.stat(source).st_mtime_ns < made for source in sources)
    except OSError:
        return False


make_methods.write()  # it is one of the sources
LIBRARY = Extension(
    "ndx._compiled",
    [*(path.as_posix() for path in sorted(Path("ndx").rglob("*.pyx"))), *C_FILES],
    define_macros=MACROS,
    include_dirs=[".", "ndx/include", np.get_include(), str(CYTHON)],
    export_symbols=[],
)
setup(
    cmdclass={"build": GenerateFirst, "build_ext": BuildModules},
    options={"build": {"build_base": f"build/{KEY}"}},
    ext_modules=[LIBRARY] if os.environ.get("NDX_BUILD_EXT") != "0" else [],
)
