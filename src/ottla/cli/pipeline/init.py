"""What `ottla pipeline init` does. Without Arrow and Spark, which may not be installed yet."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.client.connection import misuse
from ottla.spark.pipeline.example import example_text


def init(file: Path) -> None:
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(example_text())
    except FileExistsError:
        misuse(f"{file} is there already")
    print(f"written: {file}; try it with `ottla pipeline validate {file}`")
