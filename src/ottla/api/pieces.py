"""Requests with very many entries, done as many small ones.

Each piece has a few hundred entries and is handled as if a client had sent it, in a turn of the loop of its own; the
answers are put together again. Only requests whose entries succeed or fail each by itself can be cut: others do their
work in slices by themselves, or as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.api import registry
from ottla.api.call import CLOSE_CONNECTION, NO_RESPONSE, PENDING, Call
from ottla.api.registry import Api, Handler
from ottla.api.services import Services
from ottla.api.slow_answers import SLICE
from ottla.protocol import frame
from ottla.protocol.message import Message
from ottla.slices import Steps

Path = tuple[str, ...]  # names of lists, each in the elements of the one before


class Cut(NamedTuple):
    """Where a request is cut, and where its answer is put together."""

    request: Path
    response: Path
    since: int = 0  # versions from here on,
    until: int = 32767  # up to here


_TOPICS = Cut(("topics", "partitions"), ("topics", "partitions"))

# fmt: off
_CUTS: dict[int, tuple[Cut, ...]] = {
    0: (Cut(("topic_data", "partition_data"), ("responses", "partition_responses")),),
    2: (_TOPICS,),
    8: (_TOPICS,),
    9: (
        Cut(("topics", "partition_indexes"), ("topics", "partitions"), until=7),
        Cut(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"), since=8),
    ),
    10: (Cut(("coordinator_keys",), ("coordinators",), since=4),),
    13: (Cut(("members",), ("members",), since=3),),
    15: (Cut(("groups",), ("groups",)),),
    21: (_TOPICS,),
    23: (_TOPICS,),
    24: (Cut(("transactions",), ("results_by_transaction",), since=4),),
    27: (Cut(("markers",), ("markers",)),),
    28: (_TOPICS,),
    42: (Cut(("groups_names",), ("results",)),),
    47: (_TOPICS,),
    61: (Cut(("topics", "partition_indexes"), ("topics", "partitions")),),
    65: (Cut(("transactional_ids",), ("transaction_states",)),),
    69: (Cut(("group_ids",), ("groups",)),),
}
# fmt: on


def cut_of(api_key: int, version: int) -> Cut | None:
    """How requests of this kind are cut, if they can be."""
    for cut in _CUTS.get(api_key, ()):
        if cut.since <= version <= cut.until:
            return cut
    return None


def handler(entry: Api, version: int) -> Handler:
    """What handles requests of this kind that have very many entries."""
    whole, cut = registry.handler(entry), cut_of(entry.key, version)
    return whole if cut is None else in_pieces(whole, cut)


def in_pieces(whole: Handler, cut: Cut, size: int = SLICE) -> Handler:
    """A handler that does its work by giving another one pieces of at most `size` entries."""

    def handle(services: Services, call: Call, request: Any) -> object:
        if not getattr(request, cut.request[0]):
            return whole(services, call, request)  # it is something else of which there is much
        answers = _Answers(call, cut.response)
        steps = _steps(services, answers, whole, portions(request, cut.request, size))
        services.slices.add(steps, answers.all_asked, lambda: call.reply(CLOSE_CONNECTION), call)
        call.is_slow = True
        return PENDING

    return handle


def _steps(services: Services, answers: _Answers, whole: Handler, pieces: Iterator[Message]) -> Steps:
    for piece in pieces:
        call = answers.call_for(piece)
        response = whole(services, call, piece)
        if response is not PENDING:
            call.reply(response)
        yield


class _Answers:
    """Stands in for the client: takes the answers to the pieces, and gives it one when all are there."""

    def __init__(self, call: Call, path: Path) -> None:
        self._call = call
        self._path = path
        self._pieces: list[Call] = []
        self._responses: dict[int, Any] = {}  # by number of the piece
        self._is_asking = True
        call.on_closed = self._closed
        peer = call.peer
        self.address = peer.address
        self.principal = peer.principal
        self.client_software_name = peer.client_software_name
        self.client_software_version = peer.client_software_version

    def call_for(self, piece: Message) -> Call:
        whole = self._call
        call = Call(
            whole.api_key, whole.version, len(self._pieces), whole.client_id, piece, self, whole.route
        )
        call.is_open = whole.is_open
        self._pieces.append(call)
        return call

    def _closed(self) -> None:
        """The client has gone. What it asked for is done all the same, as far as it is not waiting for something."""
        for call in self._pieces:
            call.is_open = False
            if call.on_closed is not None and not call.is_answered:
                call.on_closed()

    def answered(self, call: Call, response: Any) -> None:
        if type(response) is bytes:
            response = frame.decode_response(call.api_key, call.version, memoryview(response)[4:])[1]
        self._responses[call.correlation_id] = response
        call.request = None
        self._call.throttle_ms = max(self._call.throttle_ms, call.throttle_ms)
        self._reply_if_whole()

    def all_asked(self, _: object) -> None:
        self._is_asking = False
        self._reply_if_whole()

    def _reply_if_whole(self) -> None:
        if self._is_asking or len(self._responses) < len(self._pieces) or not self._call.is_open:
            return
        responses = [self._responses[number] for number in range(len(self._pieces))]
        self._pieces, self._responses = [], {}
        self._call.reply(joined(responses, self._path))


# -- cutting


def portions(message: Message, path: Path, size: int) -> Iterator[Message]:
    """Copies of a message, each with at most `size` elements of its lists along the path."""
    name, rest = path[0], path[1:]
    taken: list[Any] = []
    used = 0
    for element in getattr(message, name) or ():
        weight = _weight(element, rest)
        if taken and used + weight > size:
            yield _with(message, name, taken)
            taken, used = [], 0
        if weight > size and rest:
            for portion in portions(element, rest, size):
                yield _with(message, name, [portion])
        else:
            taken.append(element)
            used += weight
    if taken:
        yield _with(message, name, taken)


def _weight(element: Any, path: Path) -> int:
    """How many elements this is, with those in it."""
    if not path:
        return 1
    inner = getattr(element, path[0]) or ()
    return 1 + (len(inner) if len(path) == 1 else sum(_weight(one, path[1:]) for one in inner))


def _with(message: Message, name: str, elements: list[Any]) -> Message:
    copy: Message = object.__new__(type(message))
    for field in message.FIELDS:
        setattr(copy, field.name, elements if field.name == name else getattr(message, field.name))
    return copy


# -- putting together


def joined(responses: list[Any], path: Path) -> Any:
    """One response made of those to the pieces. It is the first of them, with what the others have."""
    for special in (CLOSE_CONNECTION, NO_RESPONSE):
        if special in responses:
            return special
    whole = responses[0]
    for response in responses[1:]:
        _join(whole, response, path)
    return whole


def _join(whole: Any, more: Any, path: Path) -> None:
    name, rest = path[0], path[1:]
    elements, others = getattr(whole, name), getattr(more, name)
    if rest and elements and others and _are_same(elements[-1], others[0]):
        _join(elements[-1], others[0], rest)
        others = others[1:]
    elements += others
    if nodes := getattr(more, "node_endpoints", None):
        known = {node.node_id for node in whole.node_endpoints}
        whole.node_endpoints += [node for node in nodes if node.node_id not in known]


def _are_same(one: Message, other: Message) -> bool:
    """Whether two elements are parts of one that was cut: all but their lists is equal."""
    return all(field.array or getattr(one, field.name) == getattr(other, field.name) for field in one.FIELDS)
