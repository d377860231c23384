"""What a task raised, out of the text in which Spark hands it on to the driver."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException, PythonException

from ottla.errors import BrokerError, PipelineError

_RAISED = re.compile(r"^([A-Za-z_][\w.]*): (.*)$")


class TaskFailedError(PipelineError):
    """A task raised an error after which it is worth trying again."""

    retriable = True


@contextmanager
def told_by_tasks() -> Iterator[None]:
    """Errors of tasks as errors of the driver: a broker that is away, a disk that is full, a wrong file."""
    try:
        yield
    except PythonException as error:
        raise _raised(error) from error


def _raised(error: PySparkException) -> Exception:
    lines = [line.rstrip() for line in str(error).splitlines()]
    for line in reversed(lines):
        found = _RAISED.match(line)
        kind = _class(found[1]) if found else None
        if found is None or kind is None:
            continue
        if issubclass(kind, OSError) or (issubclass(kind, BrokerError) and kind.retriable):
            return TaskFailedError(found[2])
        if issubclass(kind, BrokerError):
            return PipelineError(found[2])
        return PipelineError(f"{kind.__name__}: {found[2]}")
    return PipelineError(next((line for line in lines if line), type(error).__name__))


def _class(name: str) -> type[BaseException] | None:
    module, _, last = name.rpartition(".")
    if module and module not in sys.modules:
        return PipelineError  # of a library that only tasks load
    found = getattr(sys.modules[module or "builtins"], last, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
