"""Compiles the kernels. Where that fails, the same source runs interpreted."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

kernels = [
    Extension(f"ottla.{path.parent.name}.{path.stem}", [str(path)], extra_compile_args=["-O3"], optional=True)
    for path in sorted(Path("src/ottla").glob("*/*kernel.py"))
]

setup(ext_modules=cythonize(kernels, language_level=3, annotate=False))
