"""`pip install` as users do it, in an isolated build from a checkout and from an sdist: with a C compiler, without one,
and with one that fails."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla import compiled
from tests.install.environments import Environment, checkout_copy, sdist
from tests.install.smoke import smoke

SOURCES = pytest.mark.parametrize("source", [checkout_copy, sdist])
KERNELS = [name for name in compiled.meant() if name.endswith("kernel")]


@pytest.mark.parametrize(("source", "is_quick"), [(checkout_copy, False), (sdist, True)])
def test_an_install_compiles_every_module(
    source: Callable[[Path], Path], is_quick: bool, tmp_path: Path
) -> None:
    environment = Environment(
        tmp_path / "environment", compiler=_quick_compiler(tmp_path) if is_quick else ""
    )
    environment.install(source(tmp_path / "source"))
    tried = smoke(environment)
    assert (tried.facts["compiled"], tried.facts["interpreted"]) == (len(compiled.meant()), [])
    assert "interpreted" not in tried.said


@SOURCES
def test_without_a_compiler_everything_works_and_says_that_it_is_slow(
    source: Callable[[Path], Path], tmp_path: Path
) -> None:
    environment = Environment(tmp_path / "environment", compiler=None)
    said = environment.install(source(tmp_path / "source"))
    assert "ottla: NOT COMPILED: a C compiler with Python's headers is needed" in said
    tried = smoke(environment)
    assert (tried.facts["compiled"], tried.facts["interpreted"]) == (0, compiled.meant())
    total = len(compiled.meant())
    assert f"slow: {total} of {total} modules run interpreted" in tried.said


@pytest.mark.parametrize(("file", "is_kernel"), [("__native_ottla.c", False), ("index_kernel.c", True)])
def test_a_module_that_cannot_be_compiled_leaves_those_interpreted_that_call_it_in_c(
    file: str, is_kernel: bool, tmp_path: Path
) -> None:
    compiler = _quick_compiler(tmp_path, fails_for=file)
    environment = Environment(tmp_path / "environment", compiler=compiler)
    said = environment.install(checkout_copy(tmp_path / "source"))
    assert f"ottla: NOT COMPILED: {'kernels' if is_kernel else 'hot modules'}: " in said
    failed = [name for name in compiled.meant() if (name in KERNELS) == is_kernel]
    assert smoke(environment).facts["interpreted"] == failed


def _quick_compiler(directory: Path, fails_for: str = "nothing") -> str:
    """The system's, without optimisation: what it makes is slow, but made in a quarter of the time."""
    path = directory / "cc"
    path.write_text(
        "#!/bin/sh\n"
        f'for word in "$@"; do case "$word" in *{fails_for}) exit 1 ;; esac; done\n'
        'exec cc "$@" -O0 -w\n'
    )
    path.chmod(0o755)
    return str(path)


def test_an_sdist_holds_what_is_needed_to_build_and_nothing_else(tmp_path: Path) -> None:
    with tarfile.open(sdist(tmp_path)) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    checkout = checkout_copy(tmp_path / "another")
    sources = {str(path.relative_to(checkout)) for path in (checkout / "src").rglob("*") if path.is_file()}
    read = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "SECURITY.md"}
    about = {*read, "MANIFEST.in", "pyproject.toml", "setup.cfg", "setup.py"}
    assert {name for name in packed if ".egg-info/" not in name} == sources | about
