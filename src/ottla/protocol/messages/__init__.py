"""Kafka's requests and responses, one module per API, imported when first needed."""

from __future__ import annotations

import importlib
from functools import cache

from ottla.protocol.message import Message
from ottla.protocol.messages.index import APIS, Api

__all__ = ["APIS", "Api", "request_class", "response_class"]


@cache
def request_class(api_key: int) -> type[Message]:
    """The class of an API's requests."""
    return _load(api_key, "Request")


@cache
def response_class(api_key: int) -> type[Message]:
    """The class of an API's responses."""
    return _load(api_key, "Response")


def _load(api_key: int, kind: str) -> type[Message]:
    api = APIS[api_key]
    module = importlib.import_module(f"ottla.protocol.messages.{api.module}")
    found: type[Message] = getattr(module, api.name + kind)
    return found
