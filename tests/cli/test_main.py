"""The command `ottla`: lazy groups, and how errors, Ctrl-C and closed pipes end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla import compiled

# A group of commands that misbehave, put in beside the real ones.
BOOM = """
import signal, sys, typer
from ottla import errors
app = typer.Typer(rich_markup_mode=None)

@app.command()
def config(): raise errors.ConfigError("segment.bytes = 'x' is not allowed:\\n it must be a number")

@app.command()
def locked(): raise errors.LogDirLockedError("/data is in use")

@app.command()
def caused():
    try:
        raise OSError(28, "No space left on device", "/data/x")
    except OSError as error:
        raise errors.StorageError("/data went offline") from error

@app.command()
def missing(): open("/no/such/file")

@app.command()
def extra(): raise ModuleNotFoundError("No module named 'pyarrow.json'", name="pyarrow.json")

@app.command()
def bug(): raise ZeroDivisionError

@app.command()
def logs():
    import logging
    logging.getLogger("ottla").debug("deep")
    logging.getLogger("ottla").info("shallow")

@app.command()
def typo(): import ottla.no_such_module

@app.command()
def defects(): raise typer.Exit(1)

@app.command()
def lines():
    for number in range(1_000_000):
        print(number)

@app.command()
def forever():
    print("ready", flush=True)
    signal.pause()
"""
START = "from ottla.cli import main as m; m.GROUPS['boom'] = ('boom', 'Fails.'); m.main()"


@pytest.fixture
def boom(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "boom.py").write_text(BOOM)
    return {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}


def run(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "config",
            "ottla: segment.bytes = 'x' is not allowed: it must be a number "
            "(docs/configuration.md lists every setting)",
        ),
        ("locked", "ottla: /data is in use (stop the process that uses the directory, then try again)"),
        ("caused", "ottla: /data went offline (free some disk space, then try again)"),
        ("missing", "ottla: /no/such/file: No such file or directory (check the path)"),
        ("extra", "ottla: this command needs pyarrow: pip install 'ottla[spark]'"),
    ],
)
def test_an_error_is_one_line_with_what_to_do_next(boom: dict[str, str], command: str, message: str) -> None:
    done = run("-c", START, "boom", command, env=boom)
    assert done.stderr == message + "\n"
    assert done.stdout == ""
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("command", "error"), [("bug", "ZeroDivisionError"), ("typo", "ModuleNotFoundError")]
)
def test_an_error_in_ottla_itself_keeps_its_traceback(boom: dict[str, str], command: str, error: str) -> None:
    done = run("-c", START, "boom", command, env=boom)
    assert "Traceback" in done.stderr
    assert error in done.stderr
    assert done.returncode == 1


def test_a_command_chooses_its_own_exit_code(boom: dict[str, str]) -> None:
    done = run("-c", START, "boom", "defects", env=boom)
    assert done.returncode == 1


def test_a_closed_pipe_ends_quietly_and_not_as_if_defects_were_found(boom: dict[str, str]) -> None:
    command = [sys.executable, "-c", START, "boom", "lines"]
    with subprocess.Popen(command, env=boom, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_ctrl_c_ends_quietly(boom: dict[str, str]) -> None:
    command = [sys.executable, "-c", START, "boom", "forever"]
    with subprocess.Popen(command, env=boom, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
        assert process.wait(60) == 130


def test_help_shows_examples_and_every_group() -> None:
    done = run("-m", "ottla", "--help")
    assert done.returncode == 0
    assert "ottla log verify DIR" in done.stdout
    assert re.search(r"^  log +Look into", done.stdout, re.MULTILINE)
    assert re.search(r"^  version +Show versions", done.stdout, re.MULTILINE)


def test_help_loads_no_group_and_nothing_heavy() -> None:
    code = (
        "import sys; from ottla.cli import main as m\n"
        "try: m.main()\n"
        "except SystemExit: print(*sorted(sys.modules))"
    )
    loaded = set(run("-c", code, "--help").stdout.splitlines()[-1].split())
    assert "ottla.cli.main" in loaded
    heavy = {"pyarrow", "numpy", "rich", "cramjam", "asyncio", "Cython", "ottla.storage", "ottla.records"}
    assert not loaded & (heavy | {"ottla.config", "ottla.logtools", "ottla.cli.log.commands"})


def test_serve_starts_without_what_only_other_commands_need() -> None:
    code = (
        "import sys; from ottla.cli import entry\n"
        "try: entry.main()\n"
        "except SystemExit as end: import ottla.cli.serve.one; print(end.code, *sorted(sys.modules))"
    )
    exit_code, *loaded = run("-c", code, "serve", "--help").stdout.splitlines()[-1].split()
    assert exit_code == "0"
    assert "ottla.broker" in loaded
    assert not {"typer", "click", "pydantic", "rich", "confluent_kafka", "prometheus_client"} & set(loaded)


def test_serve_among_the_other_commands_is_the_same_command() -> None:
    direct, among = (run("-m", module, "serve", "--help") for module in ("ottla", "ottla.cli.main"))
    assert "ottla serve --brokers 4" in direct.stdout
    assert among.stdout == direct.stdout


@pytest.mark.parametrize(
    "words", [("--brokers", "0"), ("--log-format", "xml"), ("--lsten", ":9092"), ("more",)]
)
def test_serve_refuses_wrong_usage(words: tuple[str, ...]) -> None:
    done = run("-m", "ottla", "serve", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: ottla serve")
    assert ("Did you mean --listen?" in done.stderr) == ("--lsten" in words)


def test_wrong_usage_exits_with_2() -> None:
    done = run("-m", "ottla", "lgo")
    assert done.returncode == 2
    assert "No such command 'lgo'" in done.stderr
    assert run("-m", "ottla").returncode == 2


def test_version_shows_ottla_python_what_is_compiled_codecs_and_libraries() -> None:
    text = run("-m", "ottla", "version").stdout
    facts = json.loads(run("-m", "ottla", "version", "--json").stdout)
    assert facts["ottla"] == ottla.__version__
    assert facts["compiled"] + len(facts["interpreted"]) == len(compiled.meant())
    assert facts["codecs"] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert {"crc32c", "cramjam"} <= set(facts["libraries"])
    share = f"{facts['compiled']} of {len(compiled.meant())} modules"
    for shown in (facts["ottla"], facts["python"], share, "zstd", facts["libraries"]["crc32c"]):
        assert shown in text


@pytest.mark.parametrize("group", ["groups", "log", "pipeline", "spark", "topics", "transactions"])
def test_a_group_says_of_each_command_what_it_does_in_a_whole_sentence(group: str) -> None:
    shown = run("-m", "ottla", group, "--help").stdout
    commands = shown.partition("Commands:\n")[2]
    assert commands.count("\n") >= 3
    assert "..." not in commands
    assert "completion" not in shown


def test_the_version_in_one_line() -> None:
    done = run("-m", "ottla", "--version")
    assert (done.returncode, done.stdout) == (0, f"ottla {ottla.__version__}\n")


def test_log_lines_of_any_command_are_shown_when_asked_for(boom: dict[str, str]) -> None:
    done = run("-c", START, "--log-level", "debug", "--log-format", "json", "boom", "logs", env=boom)
    entries = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(entry["level"], entry["message"]) for entry in entries] == [
        ("DEBUG", "deep"),
        ("INFO", "shallow"),
    ]
    assert run("-c", START, "boom", "logs", env=boom).stderr == ""
    done = run("-c", START, "--log-level", "loud", "boom", "logs", env=boom)
    assert done.returncode == 2
    assert "'loud' is not one of debug, info, warning, error" in done.stderr
