"""The smoke run of an installed ottla: versions, a broker, a record there and back, and commands that need more."""

from __future__ import annotations

import json
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.serving import READY
from tests.install.environments import Environment


@dataclass(frozen=True)
class Smoke:
    facts: dict[str, Any]  # of `ottla version`
    said: str  # by the broker, on standard error


def smoke(environment: Environment) -> Smoke:
    facts = json.loads(_output(environment, "version", "--json"))
    with _serve(environment) as address:
        _output(environment, "topics", "create", "greetings", "-b", address)
        _output(environment, "produce", "greetings", "-b", address, input="hello\nworld\n")
        assert _output(environment, "consume", "greetings", "-b", address) == "hello\nworld\n"
    assert "healthy" in _output(environment, "log", "verify", "data")
    _needs_extras(environment)
    return Smoke(facts, (environment.directory / "said.txt").read_text())


def _needs_extras(environment: Environment) -> None:
    """A pipeline's file can be written; what needs Spark or Arrow says in one line how to get them."""
    _output(environment, "pipeline", "init", "orders.toml")
    tomllib.loads((environment.directory / "orders.toml").read_text())
    for words in (
        ("pipeline", "run", "orders.toml"),
        ("pipeline", "validate", "orders.toml"),
        ("pipeline", "status", "orders.toml"),
        ("pipeline", "show", "orders.toml"),
        ("pipeline", "compact", "orders.toml"),
        ("spark", "verify", "data"),
        ("log", "dump", "data", "--parquet", "out.parquet"),
    ):
        done = environment.run("ottla", *words)
        extra = "parquet" if words[0] == "log" else "spark"
        assert done.returncode == 2, words
        assert done.stderr.count("\n") == _kernel_warning_lines(done.stderr) + 1, done.stderr
        assert f"pip install 'ottla[{extra}]'" in done.stderr.splitlines()[-1]


def _kernel_warning_lines(text: str) -> int:
    """Python's warning that the kernel runs interpreted, and the line of code that it shows."""
    return 2 if "RuntimeWarning: ottla's record kernel runs interpreted" in text else 0


def _output(environment: Environment, *words: str, input: str = "") -> str:
    done = environment.run("ottla", *words, input=input)
    assert done.returncode == 0, f"ottla {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def _serve(environment: Environment) -> Iterator[str]:
    """A broker on a free port, its data in data/, its standard error in said.txt; stopped in order at the end."""
    home = environment.directory
    command = [str(home / "bin/ottla"), "serve", "--data", "data", "--listen", "127.0.0.1:0", "--http", "off"]
    with (home / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=home, env=environment.variables, stdout=subprocess.PIPE, stderr=said, text=True
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = READY.fullmatch(line.strip())
        assert ready is not None, f"{line!r}, {Path(said.name).read_text()}"
        yield ready[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
