"""What `ottla version` shows: the first thing to ask for in a bug report."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import asdict, dataclass
from importlib import metadata

import ottla


@dataclass(frozen=True)
class Versions:
    ottla: str
    python: str
    platform: str
    kernel: str
    codecs: list[str]
    libraries: dict[str, str]


def collect() -> Versions:
    from ottla.records import kernel
    from ottla.records.codec import Codec

    return Versions(
        ottla=ottla.__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{platform.system()} {platform.machine()}",
        kernel="compiled" if kernel.COMPILED else "interpreted",
        codecs=[codec.name.lower() for codec in Codec],
        libraries=_libraries(),
    )


def _libraries() -> dict[str, str]:
    """The installed versions of what ottla needs to run, without those that this platform does not need."""
    found = {}
    for requirement in metadata.requires("ottla") or []:
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        if "extra ==" not in requirement:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def as_json(versions: Versions) -> str:
    return json.dumps(asdict(versions))


def as_text(versions: Versions) -> str:
    slow = " (slow: install a C compiler, then install ottla again)"
    rows = {
        "ottla": versions.ottla,
        "python": f"{versions.python}, {versions.platform}",
        "kernel": versions.kernel + (slow if versions.kernel == "interpreted" else ""),
        "codecs": " ".join(versions.codecs),
        **versions.libraries,
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())
