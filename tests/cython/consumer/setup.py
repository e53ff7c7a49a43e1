"""Build the extensions against the installed ndx."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import ndx


def extension(name, source):
    return Extension(name, [source], include_dirs=[ndx.get_include()])


setup(
    ext_modules=[
        *cythonize(
            [
                extension("consumer", "consumer.pyx"),
                extension("counting_backend", "counting_backend.pyx"),
            ],
            language_level=3,
        ),
        extension("plain", "plain.c"),
        extension("plain_cpp", "plain_cpp.cpp"),
    ],
)
