"""Java, Maven and Kafka's jars for the interop tests: fetched once into `.build/`, found there afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build"
JAVA_SOURCES = Path(__file__).with_name("java")

# Kafka's own choices of a log binding; slf4j-simple stands in for them (see the pom).
OTHER_BINDINGS = "slf4j-reload4j,slf4j-log4j12"


@cache
def require_java() -> None:
    """Install Java and Maven by apt-get where they are missing."""
    if shutil.which("mvn") and shutil.which("javac"):
        return
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    for command in (["update", "-qq"], ["install", "-y", "-qq", "openjdk-17-jdk-headless", "maven"]):
        subprocess.run(
            [*sudo, "apt-get", *command],
            check=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdout=subprocess.DEVNULL,
        )


@cache
def class_path(version: str) -> str:
    """The class path of one Kafka version with KafkaOps compiled against it."""
    require_java()
    home = BUILD / f"kafka-{version}"
    if not (home / "jars").exists():
        _copy_jars(version, home)
    classes = home / "classes"
    for source in _sources(version):
        compiled = classes / f"{source.stem}.class"
        if compiled.exists() and compiled.stat().st_mtime > source.stat().st_mtime:
            continue
        subprocess.run(
            [
                "javac",
                "-XDsuppressNotes",
                "-Xlint:-removal",
                "-cp",
                f"{home}/jars/*",
                "-d",
                str(classes),
                str(source),
            ],
            check=True,
        )
    return f"{classes}:{home}/jars/*"


def _sources(version: str) -> list[Path]:
    names = ["KafkaOps"] if version.startswith("2.") else ["KafkaOps", "HexDecoder"]
    return [JAVA_SOURCES / f"{name}.java" for name in names]


def _copy_jars(version: str, home: Path) -> None:
    partial = home / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(
        [
            *("mvn", "-q", "-B", "-f", str(JAVA_SOURCES / "pom.xml"), f"-Dkafka.version={version}"),
            *("dependency:copy-dependencies", "-DincludeScope=runtime"),
            *(f"-DexcludeArtifactIds={OTHER_BINDINGS}", f"-DoutputDirectory={partial}"),
        ],
        check=True,
    )
    partial.rename(home / "jars")
