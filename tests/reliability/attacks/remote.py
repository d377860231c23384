"""Objects in another process, used as if they were here.

Plain values come over as they are; of all else there is a `Remote` here, and what is asked of it is done there.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

_PLAIN = (type(None), bool, int, float, str, bytes)
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "get": getattr,
    "call": lambda target, *args, **fields: target(*args, **fields),
    "len": len,
    "bool": bool,
    "list": list,
    "in": operator.contains,
    "item": operator.getitem,
}


class Remote:
    """One of them."""

    def __init__(self, link: Link, number: int) -> None:
        self._link = link
        self._number = number

    def __getattr__(self, name: str) -> Any:
        return self._link.ask("get", self._number, name)

    def __call__(self, *args: Any, **fields: Any) -> Any:
        return self._link.ask("call", self._number, *args, **fields)

    def __len__(self) -> int:
        return int(self._link.ask("len", self._number))

    def __bool__(self) -> bool:
        return bool(self._link.ask("bool", self._number))

    def __iter__(self) -> Iterator[Any]:
        elements = self._link.ask("list", self._number)
        return (
            iter(elements) if isinstance(elements, list) else map(elements.__getitem__, range(len(elements)))
        )

    def __contains__(self, element: object) -> bool:
        return bool(self._link.ask("in", self._number, element))

    def __getitem__(self, key: object) -> Any:
        return self._link.ask("item", self._number, key)


class Link:
    """The way to the other process: a connection for each thread, so that none waits for another's answer."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._own = threading.local()

    def root(self) -> Remote:
        return Remote(self, 0)

    def ask(self, operation: str, number: int, *args: Any, **fields: Any) -> Any:
        if not hasattr(self._own, "connection"):
            self._own.connection = Client(self._address)
        connection: Connection = self._own.connection
        connection.send((operation, number, args, fields))
        kind, value = connection.recv()
        if kind == "error":
            raise value
        return Remote(self, value) if kind == "remote" else value


def serve(root: object, listener: Listener) -> None:
    """Do what is asked of `root` and of all that is reached from it, for ever."""
    objects, lock = [root], threading.Lock()
    while True:
        connection = listener.accept()
        threading.Thread(target=_answer, args=(connection, objects, lock), daemon=True).start()


def _answer(connection: Connection, objects: list[object], lock: threading.Lock) -> None:
    while True:
        try:
            operation, number, args, fields = connection.recv()
        except EOFError:
            return
        try:
            value = _OPERATIONS[operation](objects[number], *args, **fields)
        except Exception as error:  # noqa: BLE001 - raised again where it was asked for
            connection.send(("error", RuntimeError(repr(error))))
            continue
        if _is_plain(value):
            connection.send(("plain", value))
        else:
            with lock:
                objects.append(value)  # they live as long as the process
                number = len(objects) - 1
            connection.send(("remote", number))


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(part) for pair in value.items() for part in pair)
    return type(value) in _PLAIN
