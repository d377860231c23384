"""What a start leaves out to be quick is imported once the broker is ready.

An upgrade of the package puts new files under a running broker: a module imported after that would not fit those that
are loaded already.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator

from ottla.api.registry import APIS
from ottla.protocol import messages

_PAUSE_S = 0.005  # in which requests have their turn; a module takes about as long
_CODECS = (
    "ottla.records.compression.xerial",
    "ottla.records.compression.lz4_frame",
    "ottla.records.compression.zstd_frames",
)
_METRICS = "ottla.server.prometheus"


async def import_the_rest(*, metrics: bool) -> None:
    """Import all that a request may ask for, module by module; what it takes to show `metrics` only on demand."""
    for name in _modules():
        importlib.import_module(name)
        await asyncio.sleep(_PAUSE_S)
    if metrics:
        # Long enough to be felt, and nothing else imports any part of it: it can be left to a thread.
        await asyncio.to_thread(importlib.import_module, _METRICS)


def _modules() -> Iterator[str]:
    """What answers requests last: by then its messages, of which it has several, are there."""
    for key in APIS:
        yield f"ottla.protocol.messages.{messages.APIS[key].module}"
    yield from _CODECS
    for module in dict.fromkeys(entry.module for entry in APIS.values()):
        yield f"ottla.api.{module}"
