"""Compiles the record kernel. Where that fails, the same source runs interpreted."""

from Cython.Build import cythonize
from setuptools import Extension, setup

kernel = Extension(
    "ottla.records.kernel",
    ["src/ottla/records/kernel.py"],
    extra_compile_args=["-O3"],
    optional=True,
)

setup(ext_modules=cythonize([kernel], language_level=3, annotate=False))
