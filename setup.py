"""Compiles the modules of src/ottla/compiled.txt. Where that fails, the same source runs interpreted.

OTTLA_COMPILE=yes     compile what can be compiled, and say what cannot (what `pip install` does)
OTTLA_COMPILE=no      compile nothing
OTTLA_COMPILE=strict  what cannot be compiled is an error, unless there is no compiler (what the Makefile does)
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from Cython.Compiler.Errors import CompileError
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

COMPILE = os.environ.get("OTTLA_COMPILE", "yes")
LIST = Path("src/ottla/compiled.txt")
NAMES = [line for line in LIST.read_text().split("\n") if line and not line.startswith("#")]
SOURCES = {name: f"src/{name.replace('.', '/')}.py" for name in NAMES}
KERNELS = [name for name in NAMES if name.endswith("kernel")]
HOT = [name for name in NAMES if name not in KERNELS]
# In whatever folder: a kernel that is not listed would run interpreted, and nobody would notice.
UNLISTED = sorted({str(path) for path in Path("src/ottla").rglob("*kernel.py")} - set(SOURCES.values()))
# mypyc must not see which packages lie about here: what they tell of their types would decide whether, and into what,
# ottla is compiled. `make lint` is the strict one.
MYPY_OPTIONS = [
    "--config-file=",
    "--no-site-packages",
    "--ignore-missing-imports",
    f"--cache-dir={os.devnull}",
]


def hot_modules() -> list[Extension]:
    """One library for all of them, in which they call each other without a detour through the interpreter."""
    from mypyc.build import mypycify

    modules = mypycify([*MYPY_OPTIONS, *map(SOURCES.get, HOT)], group_name="ottla")
    for module in modules:
        module.extra_compile_args = [*module.extra_compile_args, "-g0"]
    return modules


def kernels() -> list[Extension]:
    flags = ["-O3", "-g0"]
    modules = [Extension(name, [SOURCES[name]], extra_compile_args=flags) for name in KERNELS]
    return cythonize(modules, build_dir="build", language_level=3, quiet=True)


# The largest file first: the other processors are busy with the small ones meanwhile. The modules of one group call
# each other in C, so a group is compiled as a whole or not at all.
GROUPS = {"hot modules": hot_modules, "kernels": kernels}


class Compile(build_ext):
    """Turns Python into C only now, when there is a compiler: pip runs setup.py twice before, to ask it questions."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count()

    def run(self) -> None:
        super().run()
        if self.inplace:
            self.remove_what_was_moved()

    def build_extensions(self) -> None:
        self.failures: dict[str, Exception] = {}
        if UNLISTED:
            refuse_or_tell(f"not in {LIST}: {', '.join(UNLISTED)}")
        found = {group: self.translate(group) for group in GROUPS} if self.can_compile() else {}
        self.take([module for modules in found.values() for module in modules])
        if self.extensions:
            tell(
                f"compiling {len(HOT)} hot modules and {len(KERNELS)} kernels, {self.parallel} files at a time"
            )
            super().build_extensions()
        for group, modules in found.items():
            errors = [self.failures[module.name] for module in modules if module.name in self.failures]
            if errors:
                refuse_or_tell(f"{group}: {errors[0]}")
                self.give_up(modules)
        self.remove_what_is_not_wanted()

    def take(self, modules: list[Extension]) -> None:
        """Build these: the declared ones, now with C sources and flags."""
        declared = {module.name: module for module in self.extensions}
        for module in modules:
            vars(declared[module.name]).update(vars(module))
        self.extensions = [declared[module.name] for module in modules]

    def can_compile(self) -> bool:
        probe = Path(self.build_temp) / "probe.c"
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.write_text("#include <Python.h>\n")
        try:
            self.compiler.compile([str(probe)], output_dir=self.build_temp, include_dirs=self.include_dirs)
        except (CCompilerError, BaseError, OSError) as error:
            tell_slow(f"a C compiler with Python's headers is needed ({error})")
            return False
        return True

    def translate(self, group: str) -> list[Extension]:
        try:
            return GROUPS[group]()
        except (ImportError, CompileError, SystemExit) as error:  # a wrong type makes mypyc end the process
            refuse_or_tell(f"{group} cannot be translated to C: {type(error).__name__}: {error}")
            return []

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except (CCompilerError, BaseError, OSError) as error:
            self.failures[ext.name] = error

    def give_up(self, modules: list[Extension]) -> None:
        names = {module.name for module in modules}
        self.extensions = [module for module in self.extensions if module.name not in names]

    def remove_what_is_not_wanted(self) -> None:
        """All that lies in the build directory goes into the wheel: half a group, and what an older checkout left."""
        build_lib = Path(self.build_lib)
        kept = {Path(self.get_ext_fullpath(module.name)) for module in self.extensions}
        for file in build_lib.rglob("*"):
            source = Path("src") / file.relative_to(build_lib)
            if file.is_file() and not (file in kept if file.suffix == ".so" else source.exists()):
                file.unlink()

    def remove_what_was_moved(self) -> None:
        """A library without its source would still be imported."""
        kept = {Path(self.get_ext_fullpath(module.name)).resolve() for module in self.extensions}
        for file in set(Path("src").resolve().rglob("*.so")) - kept:
            file.unlink()


def refuse_or_tell(reason: str) -> None:
    if COMPILE == "strict":
        raise SystemExit(f"ottla: not compiled: {reason}")
    tell_slow(reason)


def tell_slow(reason: str) -> None:
    tell(f"NOT COMPILED: {reason}")
    tell(
        "it works, but slowly (loops over records about 100 times); `ottla version` lists what runs interpreted"
    )


def tell(text: str) -> None:
    print(f"ottla: {text}", file=sys.stderr, flush=True)


# The same whether they can be compiled or not: they make this a package for one platform.
EXTENSIONS = [Extension(name, [source]) for name, source in SOURCES.items()]
EXTENSIONS.append(Extension("ottla__mypyc", []))  # what the hot modules have in common
setup(ext_modules=[] if COMPILE == "no" else EXTENSIONS, cmdclass={"build_ext": Compile})
