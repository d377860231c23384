"""Chooses the kernel that a test run uses, before any test imports it."""

from __future__ import annotations

import pytest

from tests import kernels

# It has tests too, though its name does not say so.
pytest.register_assert_rewrite("tests.client_behaviours")

collect_ignore: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel",
        choices=("auto", "compiled", "interpreted"),
        default="auto",
        help="auto: compiled; interpreted only where there is no C compiler to build it with",
    )


def pytest_configure(config: pytest.Config) -> None:
    choice = config.getoption("--kernel")
    compiled = all(kernels.compiled_file(name) for name in kernels.FILES)
    if outdated := kernels.outdated():
        raise pytest.UsageError(
            f"compiled from an older source: {', '.join(outdated)}; run make .venv/.ready"
        )
    if choice == "interpreted" or (choice == "auto" and not compiled and not kernels.has_compiler()):
        kernels.install_interpreted()
    elif not compiled:
        raise pytest.UsageError("the kernel is not compiled: run make, or choose --kernel=interpreted")
    else:
        kernels.install_compiled()
    if not compiled:
        collect_ignore.append("records/test_kernel_both_ways.py")
