"""Build one of the modules, whose name is the first argument."""

import os
import sys

from setuptools import Extension, setup

FLAGS = (
    ["-O1", "-std=c++17", "-fvisibility=hidden"]
    if os.name == "posix"
    else ["/std:c++17"]
)


def pybind11():
    from pybind11 import get_include

    return Extension(
        "with_pybind11",
        ["with_pybind11.cpp"],
        include_dirs=[get_include()],
        extra_compile_args=FLAGS,
    )


def nanobind():
    import nanobind

    return Extension(
        "with_nanobind",
        ["with_nanobind.cpp", f"{nanobind.source_dir()}/nb_combined.cpp"],
        include_dirs=[
            nanobind.include_dir(),
            f"{nanobind.include_dir()}/../ext/robin_map/include",
        ],
        extra_compile_args=[*FLAGS, "-fno-strict-aliasing"],
    )


def cython():
    from Cython.Build import cythonize

    (extension,) = cythonize(
        [Extension("with_cython", ["with_cython.pyx"])], language_level=3
    )
    return extension


setup(name="compiled", ext_modules=[globals()[sys.argv.pop(1)]()])
