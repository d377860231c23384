"""Compiles the kernels, and the modules that every request passes through. Where that fails, the same source runs
interpreted."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# The Makefile installs first ("no") and compiles afterwards, in place and only what has changed ("strict": an error in
# the types of a hot module then stops it).
COMPILE = os.environ.get("OTTLA_COMPILE", "yes")

# Compiled by mypyc, as they are. The Makefile reads these lines too: an edited module makes the environment stale.
HOT = [
    "src/ottla/api/call.py",
    "src/ottla/api/commits.py",
    "src/ottla/api/fetch.py",
    "src/ottla/api/fetch_sessions.py",
    "src/ottla/api/produce.py",
    "src/ottla/api/produce_runs.py",
    "src/ottla/api/services.py",
    "src/ottla/cluster/image.py",
    "src/ottla/coordinator/group.py",
    "src/ottla/coordinator/group_offsets.py",
    "src/ottla/coordinator/group_records.py",
    "src/ottla/coordinator/group_state.py",
    "src/ottla/coordinator/groups.py",
    "src/ottla/coordinator/offset_commands.py",
    "src/ottla/coordinator/result.py",
    "src/ottla/coordinator/runtime.py",
    "src/ottla/coordinator/shard.py",
    "src/ottla/coordinator/transactions.py",
    "src/ottla/coordinator/writes.py",
    "src/ottla/metrics.py",
    "src/ottla/protocol/buffers.py",
    "src/ottla/protocol/codec.py",
    "src/ottla/protocol/connection.py",
    "src/ottla/protocol/frame.py",
    "src/ottla/replica/appends.py",
    "src/ottla/replica/fetches.py",
    "src/ottla/replica/hosted.py",
    "src/ottla/replica/isr.py",
    "src/ottla/replica/partition.py",
    "src/ottla/server/dispatch.py",
    "src/ottla/server/session.py",
    "src/ottla/stall_watch.py",
    "src/ottla/storage/validation.py",
]


def kernels() -> list[Extension]:
    paths = sorted(Path("src/ottla").glob("*/*kernel.py"))
    modules = [
        Extension(
            f"ottla.{path.parent.name}.{path.stem}",
            [str(path)],
            extra_compile_args=["-O3", "-g0"],
            optional=True,
        )
        for path in paths
    ]
    return cythonize(modules, language_level=3, annotate=False)


def hot_modules() -> list[Extension]:
    """One library for all of them, in which they call each other without a detour through the interpreter."""
    try:
        from mypyc.build import mypycify

        modules = mypycify(["--ignore-missing-imports", *HOT], group_name="ottla")
    except (ImportError, SystemExit) as error:
        if COMPILE == "strict":
            raise
        print(f"ottla's hot modules are not compiled: {error}")
        return []
    for module in modules:
        module.optional = True
        module.extra_compile_args.append("-g0")
    return modules


setup(ext_modules=[] if COMPILE == "no" else [*kernels(), *hot_modules()])
