"""What `ottla version` shows: the first thing to ask for in a bug report."""

from __future__ import annotations

import json
import platform
import re
import textwrap
from dataclasses import asdict, dataclass
from importlib import import_module, metadata

import ottla
from ottla import compiled


@dataclass(frozen=True)
class Versions:
    ottla: str
    python: str
    platform: str
    compiled: int
    interpreted: list[str]  # though it was meant to be compiled
    codecs: list[str]
    libraries: dict[str, str]


def collect() -> Versions:
    from ottla.records.compression.codec import Codec

    names = compiled.meant()
    for name in names:
        import_module(name)  # so that it is told how each was loaded, not how it might be
    interpreted = compiled.interpreted()
    return Versions(
        ottla=ottla.__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{platform.system()} {platform.machine()}",
        compiled=len(names) - len(interpreted),
        interpreted=interpreted,
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
    rows = {
        "ottla": versions.ottla,
        "python": f"{versions.python}, {versions.platform}",
        "compiled": f"{versions.compiled} of {versions.compiled + len(versions.interpreted)} modules",
        "codecs": " ".join(versions.codecs),
        **versions.libraries,
    }
    width = max(map(len, rows))
    text = "\n".join(f"{name:{width}}  {value}" for name, value in rows.items())
    return f"{text}\n\n{_slow(versions.interpreted)}" if versions.interpreted else text


def _slow(interpreted: list[str]) -> str:
    names = textwrap.fill(" ".join(interpreted), 100, initial_indent="  ", subsequent_indent="  ")
    return f"Slow, because these run interpreted:\n{names}\n{compiled.REMEDY}"
