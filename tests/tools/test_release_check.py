"""What makes a checkout unfit to be released, as far as it can be seen without building it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from tools.release_check import NotFitError, check_changelog, check_sdist, pythons, read_version

import ottla

ROOT = Path(__file__).parents[2]
DATED = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\n- new\n"


def test_the_version_is_in_one_place_and_the_changelog_fits_it() -> None:
    version = read_version(ROOT)
    assert version == ottla.__version__
    check_changelog((ROOT / "CHANGELOG.md").read_text(), version)


@pytest.mark.parametrize(
    ("package", "project", "problem"),
    [
        ("", 'attr = "ottla.__version__"', "has no line"),
        ('__version__ = "1.2.3"\n', 'version = "1.2.3"\nattr = "ottla.__version__"', "none of its own"),
        ('__version__ = "1.2.3"\n', "", "must take the version"),
    ],
)
def test_a_version_in_two_places_or_none_is_refused(
    tmp_path: Path, package: str, project: str, problem: str
) -> None:
    (tmp_path / "src/ottla").mkdir(parents=True)
    (tmp_path / "src/ottla/__init__.py").write_text(package)
    (tmp_path / "pyproject.toml").write_text(project)
    with pytest.raises(NotFitError, match=problem):
        read_version(tmp_path)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (DATED, "1.2.3"),
        ("## [Unreleased]\n\n- new\n", "1.2.4.dev0"),
        (DATED + "\n## [1.2.2] - 2025-12-24\n", "1.2.3"),
    ],
)
def test_a_changelog_that_tells_what_is_new_is_fine(text: str, version: str) -> None:
    check_changelog(text, version)


@pytest.mark.parametrize(
    ("text", "version", "problem"),
    [
        ("## [Unreleased]\n\n- new\n", "1.2.3", "has no section"),
        (DATED, "1.2.4", "has no section"),
        (DATED.replace("- new\n", ""), "1.2.3", "has no section"),
        (DATED.replace(" - 2026-01-31", ""), "1.2.3", "has no section"),
        (DATED.replace("[Unreleased]\n", "[Unreleased]\n\n- newer\n"), "1.2.3", "still has lines"),
        (DATED, "1.2.4.dev0", "says nothing under"),
    ],
)
def test_a_changelog_that_does_not_is_refused(text: str, version: str, problem: str) -> None:
    with pytest.raises(NotFitError, match=problem):
        check_changelog(text, version)


def test_a_source_distribution_that_lacks_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ottla-1.2.3.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("ottla-1.2.3/setup.py"), io.BytesIO())
    with pytest.raises(NotFitError, match=r"lacks CHANGELOG\.md, LICENSE.*src/ottla/__init__\.py"):
        check_sdist(path, "1.2.3")


def test_this_python_is_among_those_that_are_built_for() -> None:
    assert len(list(pythons())) >= 1
