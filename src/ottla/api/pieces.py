"""Requests with very many entries, done as many small ones.

Each piece has a few hundred entries and is handled as if a client had sent it, in a turn of the loop of its own; the
answers are put together again. Only requests whose entries succeed or fail each by itself can be cut. Some of the
others do their work in slices by themselves; the rest is done as a whole, and may not have more than ten thousand
entries. That is as many as Kafka lets a request change.
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
from ottla.protocol.api_keys import ApiKey
from ottla.protocol.codec import MAX_ELEMENTS
from ottla.protocol.message import Message
from ottla.slices import Steps

Path = tuple[str, ...]  # names of lists, each in the elements of the one before


class Cut(NamedTuple):
    """Where a request is cut, and where its answer is put together."""

    request: Path
    response: Path
    since: int = 0  # versions from here on,
    until: int = 32767  # up to here


_MAX_WAITING = 20  # pieces of a request that wait for an answer before the next is handed out
_ANY = MAX_ELEMENTS

_TOPICS = Cut(("topics", "partitions"), ("topics", "partitions"))

# fmt: off
_CUTS: dict[int, tuple[Cut, ...]] = {
    ApiKey.PRODUCE: (Cut(("topic_data", "partition_data"), ("responses", "partition_responses")),),
    ApiKey.LIST_OFFSETS: (_TOPICS,),
    ApiKey.OFFSET_COMMIT: (_TOPICS,),
    ApiKey.OFFSET_FETCH: (
        Cut(("topics", "partition_indexes"), ("topics", "partitions"), until=7),
        Cut(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"), since=8),
    ),
    ApiKey.FIND_COORDINATOR: (Cut(("coordinator_keys",), ("coordinators",), since=4),),
    ApiKey.LEAVE_GROUP: (Cut(("members",), ("members",), since=3),),
    ApiKey.DESCRIBE_GROUPS: (Cut(("groups",), ("groups",)),),
    ApiKey.DELETE_RECORDS: (_TOPICS,),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_TOPICS,),
    ApiKey.WRITE_TXN_MARKERS: (Cut(("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions")),),
    ApiKey.TXN_OFFSET_COMMIT: (_TOPICS,),
    ApiKey.DELETE_GROUPS: (Cut(("groups_names",), ("results",)),),
    ApiKey.OFFSET_DELETE: (_TOPICS,),
    ApiKey.DESCRIBE_PRODUCERS: (Cut(("topics", "partition_indexes"), ("topics", "partitions")),),
    ApiKey.DESCRIBE_TRANSACTIONS: (Cut(("transactional_ids",), ("transaction_states",)),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (Cut(("group_ids",), ("groups",)),),
}
# fmt: on
_IN_SLICES = frozenset((ApiKey.FETCH, ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS))
_WITH_TEXT = frozenset((ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP))  # the members of a group are limited elsewhere
_MAX_WHOLE = 10_000


def max_elements(api_key: int, version: int) -> int:
    """How many elements of all its lists a request of this kind may have."""
    if api_key in _IN_SLICES or api_key in _WITH_TEXT or cut_of(api_key, version) is not None:
        return MAX_ELEMENTS
    return _MAX_WHOLE


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
        _InPieces(services, call, whole, portions(request, cut.request, size), cut.response).go_on()
        call.is_slow = True
        return PENDING

    return handle


class _InPieces:
    """One request under way. To the pieces it is the client: it takes their answers, and gives its own at the end."""

    def __init__(
        self, services: Services, call: Call, handle: Handler, pieces: Iterator[Message], path: Path
    ) -> None:
        self._services = services
        self._call = call
        self._handle = handle
        self._pieces = pieces
        self._path = path
        # Those of a Produce may all wait for replicas until the same moment.
        self._max_waiting = _ANY if call.api_key == ApiKey.PRODUCE else _MAX_WAITING
        self._waiting: set[Call] = set()
        self._responses: list[Any] = []  # by number of the piece
        self._is_asking = False
        self._is_over = False  # there are no more pieces
        call.on_closed = self._closed
        peer = call.peer
        self.address = peer.address
        self.client_software_name = peer.client_software_name
        self.client_software_version = peer.client_software_version
        self.producer_ids = peer.producer_ids

    def go_on(self) -> None:
        """Hand out pieces until there is none left, or too many of them wait."""
        self._is_asking = True
        call = self._call
        self._services.slices.add(self._ask(), self._asked, lambda: call.reply(CLOSE_CONNECTION), call)

    def _ask(self) -> Steps:
        for piece in self._pieces:
            call = self._piece_call(piece)
            response = self._handle(self._services, call, piece)
            if response is not PENDING:
                call.reply(response)
            yield
            if len(self._waiting) >= self._max_waiting:
                return None
        self._is_over = True
        return None

    def _piece_call(self, piece: Message) -> Call:
        whole, number = self._call, len(self._responses)
        call = Call(whole.api_key, whole.version, number, whole.client_id, piece, self, whole.route)
        call.is_open = whole.is_open
        self._responses.append(None)
        self._waiting.add(call)
        return call

    def _asked(self, _: object) -> None:
        self._is_asking = False
        self._go_on_or_reply()

    def answered(self, call: Call, response: Any) -> None:
        if type(response) is bytes:
            response = frame.decode_response(call.api_key, call.version, memoryview(response)[4:])[1]
        self._responses[call.correlation_id] = response
        self._waiting.discard(call)
        self._call.throttle_ms = max(self._call.throttle_ms, call.throttle_ms)
        self._go_on_or_reply()

    def _go_on_or_reply(self) -> None:
        if self._is_asking:
            return
        if not self._is_over:
            if len(self._waiting) < self._max_waiting:
                self.go_on()
        elif not self._waiting and self._call.is_open:
            self._call.is_large = True
            self._call.reply(joined(self._responses, self._path))

    def _closed(self) -> None:
        """The client has gone. What it asked for is done all the same, but nothing of it waits any more."""
        for call in self._waiting:
            call.is_open = False
            if call.on_closed is not None:
                call.on_closed()


# -- cutting


def portions(message: Message, path: Path, size: int) -> Iterator[Message]:
    """Copies of a message, each with at most `size` elements of its lists along the path.

    The message is taken apart for that: to free very many objects at once would take long.
    """
    name, rest = path[0], path[1:]
    taken: list[Any] = []
    used = 0
    left = getattr(message, name) or []
    left.reverse()
    while left:
        element = left.pop()
        weight = _weight(element, rest, size)
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


def _weight(element: Any, path: Path, enough: int) -> int:
    """How many elements this is, with those in it; no more than `enough` of them are counted in detail."""
    weight = 1
    if path:
        inner = getattr(element, path[0]) or ()
        if len(path) == 1 or len(inner) > enough:
            return 1 + len(inner)
        for one in inner:
            weight += _weight(one, path[1:], enough)
            if weight > enough:
                break
    return weight


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
