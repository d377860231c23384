"""Options of format("ottla"), parsed and checked once: frozen values that travel to the tasks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ottla.errors import ConfigError
from ottla.names import TopicPartition
from ottla.spark import offsets
from ottla.spark.offsets import EARLIEST, LATEST, Offsets
from ottla.spark.option_names import BATCH, BY_NAME, PASSED_BY_SPARK, REFUSED, STREAM, WRITE, unknown

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS = "headers"
CORRUPT = "corrupt"

_UNITS_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DEFAULT_SPLIT_BYTES = 64 << 20


@dataclass(frozen=True)
class Bound:
    """Where a read starts or ends: EARLIEST or LATEST or offsets by partition; or times, of all or by partition."""

    everywhere: int | None = None
    by_partition: Offsets = field(default_factory=dict)
    time_ms: int | None = None
    times_ms: Offsets = field(default_factory=dict)


@dataclass(frozen=True)
class ReadOptions:
    """What to read, from where to where, and how."""

    paths: tuple[str, ...] = ()
    # A client's settings, without the "kafka." before them.
    kafka: dict[str, str] = field(default_factory=dict)
    assign: tuple[TopicPartition, ...] = ()
    subscribe: tuple[str, ...] = ()
    subscribe_pattern: str | None = None
    starting: Bound = Bound(EARLIEST)
    ending: Bound = Bound(LATEST)
    late_start_is_latest: bool = False
    fail_on_data_loss: bool = True
    read_committed: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    target_bytes_per_partition: int = _DEFAULT_SPLIT_BYTES
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    columns: tuple[str, ...] = COLUMNS
    permissive: bool = False
    quarantine_path: str | None = None
    is_stream: bool = False

    @property
    def servers(self) -> str | None:
        return self.kafka.get("bootstrap.servers")

    @property
    def group_id(self) -> str | None:
        return self.kafka.get("group.id")

    def chooses(self, partition: TopicPartition) -> bool:
        """Whether this partition is one to be read; without a choice, all but Kafka's own topics are."""
        if self.assign:
            return partition in self.assign
        if self.subscribe:
            return partition.topic in self.subscribe
        if self.subscribe_pattern is not None:
            return re.fullmatch(self.subscribe_pattern, partition.topic) is not None
        return not partition.topic.startswith("__")


@dataclass(frozen=True)
class WriteOptions:
    """Where rows go."""

    kafka: dict[str, str]
    topic: str | None = None
    run_id: str | None = None
    checkpoint: str | None = None

    @property
    def servers(self) -> str:
        return self.kafka["bootstrap.servers"]


def read_options(given: Mapping[str, str], *, is_stream: bool = False) -> ReadOptions:
    """The options of spark.read or spark.readStream; ConfigError with what is wrong and what to do."""
    options = _known(given, {WRITE, BATCH if is_stream else STREAM})
    kafka = _client_settings(options)
    paths = _paths(options)
    _check_topics(options, has_paths=bool(paths), has_brokers="bootstrap.servers" in kafka)
    isolation = _one_of(kafka, "isolation.level", "read_uncommitted", "read_committed", prefix="kafka.")
    permissive = _one_of(options, "mode", "failfast", "permissive") == "permissive"
    if "quarantinepath" in options and not permissive:
        raise ConfigError(
            "quarantinePath needs mode=permissive: in mode failfast the first corrupt batch ends the read"
        )
    return ReadOptions(
        paths=paths,
        kafka=kafka,
        assign=offsets.parse_partitions(options["assign"], "assign") if "assign" in options else (),
        subscribe=_names(options.get("subscribe", "")),
        subscribe_pattern=_pattern(options.get("subscribepattern")),
        starting=_starting(options, is_stream),
        ending=_ending(options),
        late_start_is_latest=_one_of(options, "startingOffsetsByTimestampStrategy", "error", "latest")
        == "latest",
        fail_on_data_loss=_flag(options, "failOnDataLoss", default=True),
        read_committed=isolation == "read_committed",
        min_partitions=_positive(options, "minPartitions"),
        max_records_per_partition=_positive(options, "maxRecordsPerPartition"),
        target_bytes_per_partition=_bytes(options, "targetBytesPerPartition") or _DEFAULT_SPLIT_BYTES,
        max_offsets_per_trigger=_positive(options, "maxOffsetsPerTrigger"),
        max_bytes_per_trigger=_bytes(options, "maxBytesPerTrigger"),
        min_offsets_per_trigger=_positive(options, "minOffsetsPerTrigger"),
        max_trigger_delay_ms=_milliseconds(options, "maxTriggerDelay", 15 * 60_000),
        columns=_columns(options, with_corrupt=permissive and "quarantinepath" not in options),
        permissive=permissive,
        quarantine_path=options.get("quarantinepath"),
        is_stream=is_stream,
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of df.write or df.writeStream."""
    for name in given:
        option = BY_NAME.get(name.lower())
        if option is not None and WRITE not in option.where:
            raise ConfigError(f"{option.name} is an option for reading; it means nothing to a write")
    options = _known(given, set())
    kafka = _client_settings(options)
    if "bootstrap.servers" not in kafka:
        raise ConfigError("nowhere to write to: give kafka.bootstrap.servers")
    return WriteOptions(kafka, options.get("topic"), options.get("runid"), options.get("checkpointlocation"))


def _known(given: Mapping[str, str], elsewhere: set[str]) -> dict[str, str]:
    """The options by their names in lower case, without those that are null; errors for those that cannot be."""
    options: dict[str, str] = {}
    for name, value in given.items():
        key = name.lower()
        option = BY_NAME.get(key)
        if key in REFUSED:
            raise ConfigError(f"{name} cannot be set: {REFUSED[key]}")
        if option is not None and option.where in elsewhere:
            place = {WRITE: "writing", BATCH: "spark.read, a query that ends", STREAM: "spark.readStream"}
            raise ConfigError(f"{option.name} is only for {place[option.where]}")
        if option is None and key not in PASSED_BY_SPARK and not key.startswith("kafka."):
            raise ConfigError(unknown(name))
        if value is not None:
            options[key] = str(value)
    return options


def _client_settings(options: Mapping[str, str]) -> dict[str, str]:
    settings = {name[len("kafka.") :]: value for name, value in options.items() if name.startswith("kafka.")}
    plain = options.get("bootstrap.servers")
    if plain is not None:
        if settings.get("bootstrap.servers", plain) != plain:
            raise ConfigError("kafka.bootstrap.servers and bootstrap.servers differ; give one of them")
        settings["bootstrap.servers"] = plain
    return settings


def _check_topics(options: Mapping[str, str], *, has_paths: bool, has_brokers: bool) -> None:
    if not has_paths and not has_brokers:
        raise ConfigError("nothing to read from: give path (a data directory) or kafka.bootstrap.servers")
    chosen = [name for name in ("assign", "subscribe", "subscribePattern") if name.lower() in options]
    if len(chosen) > 1:
        raise ConfigError(f"{' and '.join(chosen)} contradict each other; give one of them")
    if not chosen and not has_paths:
        raise ConfigError("no topics: give subscribe, subscribePattern or assign")


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in ("path", "paths"):
        text = options.get(name, "")
        if text.startswith("["):
            try:
                found += [str(path) for path in json.loads(text)]
            except ValueError:
                raise ConfigError(f"{name} is neither a path nor a JSON list of paths: {text}") from None
        elif text:
            found.append(text)
    for path in found:
        if "://" in path and not path.startswith("file://"):
            raise ConfigError(f"{path}: segments are read from directories that every machine sees as files")
    # Tasks may run in another directory than the driver.
    paths = (os.path.abspath(path.removeprefix("file://").removeprefix("file:")) for path in found)
    return tuple(dict.fromkeys(paths))


def _starting(options: Mapping[str, str], is_stream: bool) -> Bound:
    """As in the connector, startingTimestamp goes first, then startingOffsetsByTimestamp, then startingOffsets."""
    if "startingtimestamp" in options:
        return Bound(time_ms=parse_time(options["startingtimestamp"], "startingTimestamp"))
    if "startingoffsetsbytimestamp" in options:
        name = "startingOffsetsByTimestamp"
        return Bound(times_ms=offsets.parse(options[name.lower()], name))
    text = options.get("startingoffsets", "latest" if is_stream else "earliest").strip()
    bound = _offsets_bound(text, "startingOffsets")
    if not is_stream and (bound.everywhere == LATEST or LATEST in bound.by_partition.values()):
        raise ConfigError(
            "startingOffsets=latest leaves nothing to read in a query that ends; use readStream"
        )
    return bound


def _ending(options: Mapping[str, str]) -> Bound:
    if "endingtimestamp" in options:
        return Bound(time_ms=parse_time(options["endingtimestamp"], "endingTimestamp"))
    if "endingoffsetsbytimestamp" in options:
        name = "endingOffsetsByTimestamp"
        return Bound(times_ms=offsets.parse(options[name.lower()], name))
    bound = _offsets_bound(options.get("endingoffsets", "latest").strip(), "endingOffsets")
    if bound.everywhere == EARLIEST or EARLIEST in bound.by_partition.values():
        raise ConfigError("endingOffsets=earliest leaves nothing to read")
    return bound


def _offsets_bound(text: str, option: str) -> Bound:
    if text.lower() in ("earliest", "latest"):
        return Bound(EARLIEST if text.lower() == "earliest" else LATEST)
    found = offsets.parse(text, option)
    for partition, offset in found.items():
        if offset < EARLIEST:
            raise ConfigError(
                f"{option}: {partition} has {offset}; offsets begin at 0, -2 is earliest, -1 latest"
            )
    return Bound(by_partition=found)


def parse_time(text: str, option: str) -> int:
    """Milliseconds since 1970, or an ISO 8601 time (UTC where it names no zone)."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{option} is neither milliseconds nor a time such as 2026-01-31T12:00:00Z: {text}"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _pattern(text: str | None) -> str | None:
    if text is not None:
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(f"subscribePattern {text} is no regular expression: {error}") from None
    return text


def _columns(options: Mapping[str, str], *, with_corrupt: bool) -> tuple[str, ...]:
    every: tuple[str, ...] = COLUMNS
    if _flag(options, "includeHeaders", default=False):
        every += (HEADERS,)
    if with_corrupt:
        every += (CORRUPT,)
    asked = _names(options.get("columns", ""))
    for name in asked:
        if name not in (*every, HEADERS):
            raise ConfigError(f"columns: there is no column {name}; there are {', '.join((*every, HEADERS))}")
    return asked or every


def _one_of(options: Mapping[str, str], name: str, default: str, other: str, prefix: str = "") -> str:
    text = options.get(name.lower(), default)
    if text.lower() not in (default, other):
        raise ConfigError(f"{prefix}{name} is {default} or {other}, not {text}")
    return text.lower()


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} is true or false, not {text}")
    return text == "true"


def _positive(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdigit() or int(text) == 0:
        raise ConfigError(f"{name} is a number above 0, not {text}")
    return int(text)


def _bytes(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)\s*([kmgt]?)i?b?", text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise ConfigError(f"{name} is a number of bytes such as 1048576, 512k or 64m, not {text}")
    return int(match[1]) * _UNITS_BYTES[match[2]]


def _milliseconds(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name.lower())
    if text is None:
        return default
    match = re.fullmatch(r"(\d+)\s*(ms|s|min|m|h|d)?", text.strip().lower())
    if match is None:
        raise ConfigError(f"{name} is a time such as 500ms, 30s, 15m or 2h, not {text}")
    return int(match[1]) * _UNITS_MS[match[2] or "ms"]
