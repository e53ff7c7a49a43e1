"""Build the extensions against the installed ndx."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

import ndx


def extension(name, source, *flags):
    return Extension(
        name, [source], include_dirs=[ndx.get_include()], extra_compile_args=[*flags]
    )


setup(
    ext_modules=[
        *cythonize(
            [
                extension("consumer", "consumer.pyx"),
                extension("counting_backend", "counting_backend.pyx"),
                extension("documented", "documented.pyx"),
            ],
            language_level=3,
        ),
        extension("documented_c", "documented_c.c"),
        extension("plain", "plain.c"),
        extension("plain_cpp", "plain_cpp.cpp"),
        # Optimised, so that a function that ends with a call jumps.
        extension("holder", "holder.c", *(["-O2"] if os.name == "posix" else [])),
    ],
)
