"""The cluster as one broker knows it: the current image on the event loop, and the way to change it.

The store is used on a thread of its own, one call after the other. A change is there for everybody on the loop (the
image, then every subscriber) before the one who asked for it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.cluster.config_views import broker_properties
from ottla.cluster.image import ClusterImage
from ottla.cluster.outcome import Command, Outcome
from ottla.cluster.store import PRODUCER_ID_BLOCK, MetadataStore
from ottla.config import BrokerConfig, LogConfig
from ottla.errors import ConfigError
from ottla.runtime import Done, LoopRuntime, Timer

# Called with the image before, the one now, and what to call when it is carried out (partitions made, for example).
Subscriber = Callable[[ClusterImage, ClusterImage, Callable[[], None]], None]


class Metadata:
    """Owned by the loop. `announce` is called after each change of ours, to nudge the brokers that share the store."""

    def __init__(
        self, store: MetadataStore, runtime: LoopRuntime, node_id: int, config: BrokerConfig
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._lane = runtime.lane("metadata")
        self._subscribers: list[Subscriber] = []
        self._poll: Timer | None = None
        self._producer_ids = range(0)
        self._producer_id_waiters: list[Done[int]] = []
        self.node_id = node_id
        self.config = config  # as the broker was started; `broker_config` has what was changed since
        self.announce: Callable[[], None] | None = None
        self._set_image(ClusterImage(cluster_id=""))

    # -- reading

    @property
    def broker_config(self) -> BrokerConfig:
        """This broker's settings now, with those that were changed while it runs."""
        return self._broker_config

    def broker_properties(self) -> dict[str, str]:
        """The same as text: what the file says, and what was changed since."""
        return broker_properties(self.image, self.node_id, self.config.properties)

    def topic_config(self, topic: str) -> LogConfig:
        """The settings of a topic's logs: its own, else this broker's defaults. Also of one that is not there yet."""
        found = self._topic_configs.get(topic)
        if found is None:
            info = self.image.topics.get(topic)
            own = info.config if info else {}
            found = self._resolved(own) if own else self._topic_defaults
            self._topic_configs[topic] = found
        return found

    def _resolved(self, own: Mapping[str, str]) -> LogConfig:
        try:
            return LogConfig.from_properties(own, self.broker_properties())
        except ConfigError:
            # A default that was set later does not go with what the topic says: the topic's word counts.
            return LogConfig.from_properties(own)

    # -- life

    def open(self, done: Callable[[BaseException | None], None]) -> None:
        """Open the store and take its image. Subscribers hear of it as of any other change."""

        def work() -> ClusterImage:
            self._store.open()
            return self._store.load()

        self._lane.submit(work, lambda image, error: self._take(image, error, done))

    def subscribe(self, subscriber: Subscriber) -> None:
        """Hear of every new image, in order. The next may come before this one is carried out."""
        self._subscribers.append(subscriber)

    def start_polling(self, interval_ms: int) -> None:
        """Look for changes of other brokers now and then, in case a nudge is lost."""

        def tick() -> None:
            self.refresh()
            self.start_polling(interval_ms)

        self._poll = self._runtime.call_later(interval_ms, tick)

    def close(self, done: Callable[[], None]) -> None:
        """Close the store after what is under way."""
        if self._poll is not None:
            self._poll.cancel()
        self._lane.submit(self._store.close, lambda _, error: done())

    # -- changing

    def change(self, command: Command, done: Done[Outcome]) -> None:
        """Run a command on the newest image and keep its outcome. `done` comes when the new image is here and every
        subscriber has carried it out; with an error, nothing has changed."""

        def finish(kept: tuple[ClusterImage, Outcome] | None, error: BaseException | None) -> None:
            if kept is None:
                done(None, error)
                return
            image, outcome = kept
            changed = outcome.image.revision < image.revision
            self._apply(image, lambda: done(outcome, None))
            if changed and self.announce is not None:
                self.announce()

        self._lane.submit(lambda: self._store.update(command), finish)

    def refresh(self, done: Callable[[BaseException | None], None] | None = None) -> None:
        """Another broker may have changed the store: look."""

        def work() -> ClusterImage | None:
            return None if self._store.revision() == self.image.revision else self._store.load()

        self._lane.submit(work, lambda image, error: self._take(image, error, done or (lambda error: None)))

    def next_producer_id(self, done: Done[int]) -> None:
        """An id that no producer has had. They are taken from the store in blocks."""
        if self._producer_ids:
            first, self._producer_ids = self._producer_ids[0], self._producer_ids[1:]
            done(first, None)
            return
        self._producer_id_waiters.append(done)
        if len(self._producer_id_waiters) == 1:
            self._lane.submit(self._store.allocate_producer_ids, self._take_producer_ids)

    def _take_producer_ids(self, first: int | None, error: BaseException | None) -> None:
        waiters, self._producer_id_waiters = self._producer_id_waiters, []
        if first is not None:
            self._producer_ids = range(first, first + PRODUCER_ID_BLOCK)
        for done in waiters:
            if error is not None:
                done(None, error)
            else:
                self.next_producer_id(done)

    def _take(
        self,
        image: ClusterImage | None,
        error: BaseException | None,
        done: Callable[[BaseException | None], None],
    ) -> None:
        if image is None:
            done(error)
        else:
            self._apply(image, lambda: done(None))

    def _apply(self, image: ClusterImage, ready: Callable[[], None]) -> None:
        """Make it the current one and tell everybody; `ready` once all of them have carried it out."""
        old = self.image
        if image.revision == old.revision and old.cluster_id:
            ready()
            return
        self._set_image(image)
        waiting = len(self._subscribers) + 1

        def one_is_ready() -> None:
            nonlocal waiting
            waiting -= 1
            if waiting == 0:
                ready()

        for subscriber in self._subscribers:
            subscriber(old, image, one_is_ready)
        one_is_ready()

    def _set_image(self, image: ClusterImage) -> None:
        self.image = image  # the newest that this broker knows; changed only here
        self._topic_configs: dict[str, LogConfig] = {}
        properties = self.broker_properties()
        try:
            checked = BrokerConfig.from_properties(properties), LogConfig.from_properties({}, properties)
        except ConfigError:
            # It was checked against the file of the broker that changed it; with this one's file it does not go.
            checked = self.config, LogConfig.from_properties({}, self.config.properties)
        self._broker_config, self._topic_defaults = checked
