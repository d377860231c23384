"""`make release-check`: is this checkout fit to be released? Everything that users would get is built and tried.

1. The version is in one place, src/ottla/__init__.py, and CHANGELOG.md tells what is in it.
2. A source distribution is built, with every file of src that is in the repository.
3. From that, not from the checkout, a wheel is built for each Python, with compilers of the versions and hashes in
   requirements/build.txt.
4. Each wheel is installed into an empty environment and tried: a broker, records there and back, `ottla log verify`.
   `ottla version` must say that every module is compiled.

What was built is in .build/release/dist. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.install.environments import Environment, checkout_copy
from tests.install.smoke import smoke

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)


class NotFitError(Exception):
    """Why this checkout cannot be released, and what to do about it."""


# -- 1. version and changelog


def read_version(root: Path) -> str:
    """The version of the package; pyproject.toml must take it from there and have none of its own."""
    found = re.search(
        r'^__version__ = "([^"]+)"$', (root / "src/ottla/__init__.py").read_text(), re.MULTILINE
    )
    if found is None:
        raise NotFitError('src/ottla/__init__.py has no line like __version__ = "1.2.3"')
    project = (root / "pyproject.toml").read_text()
    if re.search(r"^version\s*=\s*\"", project, re.MULTILINE) or 'attr = "ottla.__version__"' not in project:
        raise NotFitError(
            "pyproject.toml must take the version from ottla.__version__ and have none of its own"
        )
    return found[1]


def check_changelog(text: str, version: str) -> None:
    """A release has a section with its number and date; until then, what is new stands under Unreleased."""
    sections = dict(re.findall(r"^## (\[[^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    if ".dev" in version:
        if not sections.get("[Unreleased]", "").strip():
            raise NotFitError(f"CHANGELOG.md says nothing under [Unreleased], but the version is {version}")
        return
    dated = re.compile(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d")
    if not any(dated.fullmatch(title) and body.strip() for title, body in sections.items()):
        raise NotFitError(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD' that says what is new")
    if sections.get("[Unreleased]", "").strip():
        raise NotFitError(f"CHANGELOG.md still has lines under [Unreleased]: move them to [{version}]")


def check_committed(version: str) -> None:
    """A release is what is in the repository; a rehearsal with a .dev version may have more."""
    if ".dev" not in version and (changed := _output("git", "status", "--porcelain")):
        raise NotFitError(f"not committed:\n{changed}")


# -- 2. and 3. the source distribution, and wheels from it


def build_sdist(dist: Path, work: Path) -> Path:
    copy = checkout_copy(work / "checkout")
    _run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "-o", str(dist), str(copy))
    (found,) = dist.glob("*.tar.gz")
    return found


def check_sdist(sdist: Path, version: str) -> None:
    top = f"ottla-{version}"
    with tarfile.open(sdist) as archive:
        packed = {name.removeprefix(f"{top}/") for name in archive.getnames()}
    listed = _output("git", "ls-files", "--cached", "--others", "--exclude-standard", "src").split()
    wanted = {name for name in listed if (ROOT / name).exists()}
    wanted |= {"setup.py", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md"}
    if missing := sorted(wanted - packed):
        raise NotFitError(f"{sdist.name} lacks {', '.join(missing)}: see MANIFEST.in")


def build_wheel(python: str, sdist: Path, dist: Path, work: Path) -> Path:
    """The wheel of one Python, from the unpacked source distribution, with pinned compilers."""
    _run(python, "-m", "venv", str(work / "builder"))
    builder = str(work / "builder/bin/python")
    _run(
        builder, "-m", "pip", "install", "-q", "--require-hashes", "-r", str(ROOT / "requirements/build.txt")
    )
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "source", filter="data")
    (source,) = (work / "source").iterdir()
    before = set(dist.glob("*.whl"))
    _run(
        "env",
        "OTTLA_COMPILE=strict",
        builder,
        "-m",
        "build",
        "-w",
        "--no-isolation",
        "-o",
        str(dist),
        str(source),
    )
    (found,) = set(dist.glob("*.whl")) - before
    return found


# -- 4. tried in an empty environment


def try_wheel(python: str, wheel: Path, version: str, work: Path) -> str:
    environment = Environment(work / "user", python=python)
    try:
        environment.install(wheel)
        facts = smoke(environment).facts
    except AssertionError as error:
        raise NotFitError(f"{wheel.name} does not work: {error}") from error
    if facts["ottla"] != version:
        raise NotFitError(f"{wheel.name} says that it is {facts['ottla']}")
    if facts["interpreted"]:
        raise NotFitError(f"{wheel.name}: these run interpreted: {', '.join(facts['interpreted'])}")
    return f"{facts['python']}: {facts['compiled']} modules, all compiled; broker, records and verify work"


# -- Pythons


def pythons() -> Iterator[str]:
    """One of each version that is old enough, of those on the path and of pyenv's."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], OLDEST[1] + 10)]
    paths = [found for name in names if (found := shutil.which(name))]
    if shutil.which("pyenv"):
        root = Path(_output("pyenv", "root").strip())
        paths += map(str, sorted((root / "versions").glob("3.*/bin/python")))
    seen: set[tuple[int, ...]] = set()
    for path in [sys.executable, *paths]:
        asked = subprocess.run(
            [path, "-c", "import sys, venv; print(*sys.version_info[:2])"], capture_output=True, text=True
        )
        if asked.returncode == 0 and (version := tuple(map(int, asked.stdout.split()))) >= OLDEST:
            if version not in seen:
                yield path
            seen.add(version)


# -- all of it


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make release-check", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument(
        "pythons", nargs="*", help="interpreters to build for; all that are found if none is given"
    )
    chosen = parser.parse_args().pythons or list(pythons())
    began = time.monotonic()
    try:
        _check(chosen)
    except NotFitError as error:
        print(f"not fit to be released: {error}", file=sys.stderr)
        return 1
    print(f"fit to be released; {round(time.monotonic() - began)} s")
    return 0


def _check(chosen: list[str]) -> None:
    version = read_version(ROOT)
    check_changelog((ROOT / "CHANGELOG.md").read_text(), version)
    check_committed(version)
    print(f"version {version}: in one place, and in CHANGELOG.md", flush=True)
    work = ROOT / ".build/release"
    shutil.rmtree(work, ignore_errors=True)
    dist = work / "dist"
    sdist = build_sdist(dist, work)
    check_sdist(sdist, version)
    print(f"{sdist.name}: complete", flush=True)
    for number, python in enumerate(chosen):
        place = work / str(number)
        print(f"building for {python} (a minute or two)", flush=True)
        wheel = build_wheel(python, sdist, dist, place)
        print(f"{wheel.name}: {try_wheel(python, wheel, version, place)}", flush=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise NotFitError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
