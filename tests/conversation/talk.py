"""A conversation with one broker: a script asks, and every answer is written down in its normal form."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from ottla.protocol import frame
from ottla.protocol.codec import DecodeError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.message import Message
from ottla.protocol.messages import APIS
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conversation.client import ConnectionEndedError, RawClient
from tests.conversation.normal import Normaliser

CLIENT_ID = "conversation"
SETTLE_TIMEOUT_S = 120.0
CLOSED = "the connection is closed"
NOTHING = "nothing"
NO_ANSWER = "no answer"
METADATA = 12
FETCH = 12
CREATE_TOPICS = 7

Answer = dict[str, Any] | str


class Talk:
    """What scripts speak through. Answers are kept under the step's name, the API and the version."""

    def __init__(self, host: str, port: int) -> None:
        self.client = RawClient(host, port)
        self.answers: dict[str, Answer] = {}
        self.normal = Normaliser(port)
        self._settled = 0
        self._others: list[RawClient] = []

    # -- what is written down

    def ask(
        self,
        step: str,
        version: int,
        request: Message,
        *,
        client_id: str | None = CLIENT_ID,
        only: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Send a request and keep the answer; None if the broker closed the connection instead.

        `only` cuts the response down to what the script is about (there may be topics of other scripts).
        """
        return self._ask(self.client, step, version, request, client_id, only)

    def begin(
        self, step: str, version: int, request: Message, only: Callable[[Any], Any] | None = None
    ) -> Callable[[], Any]:
        """Send a request whose answer may take its time, on a connection of its own; the call waits for it.

        A question with an answer goes before it and after it: the broker has taken the connection up, and has the
        request, when this returns. Otherwise another connection could be faster.
        """
        client = RawClient(self.client.host, self.client.port)
        self._others.append(client)
        client.send(0, ApiVersionsRequest(), CLIENT_ID)
        client.receive()
        client.send(version, request, CLIENT_ID)
        self.request(0, ApiVersionsRequest())
        return lambda: self._ask(client, step, version, request, None, only)

    def _ask(
        self,
        client: RawClient,
        step: str,
        version: int,
        request: Message,
        client_id: str | None,
        only: Callable[[Any], Any] | None,
    ) -> Any:
        try:
            if client is self.client:
                client.send(version, request, client_id)
            response = frame.decode_response(request.API_KEY, version, client.receive())[1]
        except ConnectionEndedError:
            self._keep(step, request.API_KEY, version, CLOSED)
            return None
        except TimeoutError:
            self._keep(step, request.API_KEY, version, NO_ANSWER)
            return None
        except DecodeError as error:
            self._keep(step, request.API_KEY, version, f"an answer that cannot be read: {error}")
            return None
        self.normal.step = step
        if only is not None:
            only(response)
        self._keep(step, request.API_KEY, version, self.normal.message(response, version))
        return response

    def tell(self, step: str, version: int, request: Message, *, client_id: str | None = CLIENT_ID) -> None:
        """Send a request that is not answered; whether the connection lives on is seen by a second request."""
        try:
            self.client.send(version, request, client_id)
            self.client.send(0, ApiVersionsRequest(), client_id)
            answer = self.client.receive()
        except ConnectionEndedError:
            self._keep(step, request.API_KEY, version, CLOSED)
            return
        try:
            response = frame.decode_response(ApiVersionsRequest.API_KEY, 0, answer)[1]
            said = NOTHING if response.api_keys else "an answer"
        except DecodeError:
            said = "an answer"
        self._keep(step, request.API_KEY, version, said)

    def raw(self, step: str, data: bytes, answered_as: tuple[int, int] = (18, 0)) -> None:
        """Send bytes as they are; an answer is read as that API in that version."""
        key, version = answered_as
        try:
            self.client.send_bytes(len(data).to_bytes(4, "big") + data)
            _, response = frame.decode_response(key, version, self.client.receive())
            said: Answer = self.normal.message(response, version)
        except ConnectionEndedError:
            said = CLOSED
        self.answers[step] = said

    def _keep(self, step: str, api_key: int, version: int, said: Answer) -> None:
        name = f"{APIS[api_key].name} v{version}: {step}"
        assert name not in self.answers, f"{name!r} is said twice"
        self.answers[name] = said

    # -- what is not

    def request(self, version: int, request: Message, client_id: str | None = CLIENT_ID) -> Any:
        """The response to a request; nothing is written down."""
        self.client.send(version, request, client_id)
        return frame.decode_response(request.API_KEY, version, self.client.receive())[1]

    def until(self, version: int, request: Message, settled: Callable[[Any], bool]) -> Any:
        """Ask again until the answer is as it should be: Kafka does much of its work after it has answered."""
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while not settled(response := self.request(version, request)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"still {response!r}")
            time.sleep(0.02)
        return response

    def topic(self, name: str, partitions: int = 1, **configs: str) -> UUID:
        """Make a topic and wait until it can be used. Dots in names of configs are written as underscores."""
        settings = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        response = self.request(CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        assert response.topics[0].error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), response
        return self.await_topic(name, partitions)

    def await_topic(self, name: str, partitions: int = 1) -> UUID:
        """Wait until every partition has a leader that knows that it is one."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)

        def settled(response: Any) -> bool:
            found = response.topics[0]
            return (
                found.error_code == 0
                and len(found.partitions) == partitions
                and all(partition.error_code == 0 for partition in found.partitions)
            )

        topic_id: UUID = self.until(METADATA, request, settled).topics[0].topic_id
        wanted = [FetchPartition(partition=index) for index in range(partitions)]
        self.until(
            FETCH,
            FetchRequest(topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=wanted)]),
            lambda response: all(found.error_code == 0 for found in response.responses[0].partitions),
        )
        self.normal.topic_id(topic_id, name)
        return topic_id

    def settle(self) -> None:
        """Wait until the changes so far have come to every part of the broker: they come in their order.

        Kafka's topics come before settings do, and changes that it makes together are seen one by one. So the first
        topic may be there too early; with the second, all parts are done with the first.
        """
        for _ in range(2):
            self._settled += 1
            self.topic(f"settled-{id(self)}-{self._settled}")

    def await_no_topic(self, name: str) -> None:
        """Wait until nobody knows it any more."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        self.until(METADATA, request, lambda response: response.topics[0].error_code != 0)

    def tick(self) -> None:
        """Wait for the next millisecond, so that what follows has another time."""
        begun_ms = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 <= begun_ms:
            pass

    def close(self) -> None:
        for client in (self.client, *self._others):
            client.close()


def versions(api_key: int) -> Iterator[int]:
    """All versions that ottla's messages have; Kafka's are among them."""
    api = APIS[api_key]
    yield from range(api.min_version, api.max_version + 1)
