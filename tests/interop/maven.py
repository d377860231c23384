"""Java, Maven and Kafka's jars for the interop tests: fetched once into `.build/`, found there afterwards."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.interop import apt
from tests.interop.fetching import fetch

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build"
JAVA_SOURCES = Path(__file__).with_name("java")

# Kafka's own choices of a log binding; slf4j-simple stands in for them (see the pom).
OTHER_BINDINGS = "slf4j-reload4j,slf4j-log4j12"

# Kafka 4 needs 17 or later. Debian and Ubuntu have one of these, or several.
JDKS = ("openjdk-17-jdk-headless", "openjdk-21-jdk-headless", "openjdk-25-jdk-headless")


@cache
def require_java() -> None:
    """Install Java and Maven by apt-get where they are missing."""
    if not (shutil.which("mvn") and shutil.which("javac")):
        apt.install(JDKS, ("maven",))


@cache
def class_path(version: str) -> str:
    """The class path of one Kafka version with our own classes compiled against it."""
    require_java()
    home = BUILD / f"kafka-{version}"
    return _compiled(home, JAVA_SOURCES / "pom.xml", version, _sources(version))


@cache
def streams_class_path(version: str) -> str:
    """The class path of our one application of Kafka Streams."""
    require_java()
    folder = JAVA_SOURCES / "streams"
    home = BUILD / f"kafka-streams-{version}"
    return _compiled(home, folder / "pom.xml", version, [folder / "WordCount.java"])


def _compiled(home: Path, pom: Path, version: str, sources: list[Path]) -> str:
    """Jars and our own classes beside them."""
    if not (home / "jars").exists():
        _copy_jars(pom, version, home)
    classes = home / "classes"
    if any(_is_stale(classes / f"{source.stem}.class", source) for source in sources):
        options = ["-XDsuppressNotes", "-Xlint:-removal", "-cp", f"{home}/jars/*", "-d", str(classes)]
        subprocess.run(["javac", *options, *map(str, sources)], check=True)
    return f"{classes}:{home}/jars/*"


def _is_stale(compiled: Path, source: Path) -> bool:
    return not compiled.exists() or compiled.stat().st_mtime <= source.stat().st_mtime


def _sources(version: str) -> list[Path]:
    names = ["KafkaOps", "Load", "Tools"]
    if not version.startswith("2."):
        names.append("HexDecoder")
    return [JAVA_SOURCES / f"{name}.java" for name in names]


def _copy_jars(pom: Path, version: str, home: Path) -> None:
    partial = home / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    fetch(
        [
            *("mvn", "-q", "-B", "-f", str(pom), f"-Dkafka.version={version}"),
            *("dependency:copy-dependencies", "-DincludeScope=runtime"),
            *(f"-DexcludeArtifactIds={OTHER_BINDINGS}", f"-DoutputDirectory={partial}"),
        ]
    )
    partial.rename(home / "jars")
