"""Compiles the record kernel. Where that fails, the same source runs interpreted."""

from Cython.Build import cythonize
from setuptools import Extension, setup

kernels = [
    Extension(
        f"ottla.records.{name}", [f"src/ottla/records/{name}.py"], extra_compile_args=["-O3"], optional=True
    )
    for name in ("kernel", "record_kernel", "index_kernel", "check_kernel")
]

setup(ext_modules=cythonize(kernels, language_level=3, annotate=False))
