"""From `ottla serve`'s options and a server.properties to what each broker process is started with."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ottla.broker import Address, Settings
from ottla.config import BrokerConfig, check_known, load_properties, other_keys, unknown_text
from ottla.errors import ConfigError

DEFAULT_LISTEN = Address("127.0.0.1", 9092)
DEFAULT_HTTP = "127.0.0.1:9644"
STORE = "ottla.db"
_EVERYWHERE = ("", "0.0.0.0", "::", "[::]")


@dataclass(frozen=True, slots=True)
class Options:
    """What was typed."""

    data: Path | None = None
    listen: str | None = None
    advertise: str | None = None
    config: Path | None = None
    assignments: Sequence[str] = ()
    http: str | None = "off"  # None: not asked for, so it is served where there is room
    node: int | None = None  # which of several brokers this process is


def default_data_dir() -> Path:
    """Where a user's programs keep their data."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "ottla"


def parse_address(text: str, what: str) -> Address:
    """`host:port`, `:port` for every address of the machine, or `[::1]:port`."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{what} {text!r} is not HOST:PORT, as in 127.0.0.1:9092")
    return Address(host.strip("[]"), int(port))


def read_options(options: Options) -> dict[str, str]:
    """All properties that were given; what stands on the command line wins over the file."""
    return _read_file(options) | _read_assignments(options)


def _read_file(options: Options) -> dict[str, str]:
    if options.config is None:
        return {}
    try:
        return load_properties(options.config.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{options.config} is not a server.properties: no UTF-8 at byte {error.start}"
        ) from error


def _read_assignments(options: Options) -> dict[str, str]:
    properties: dict[str, str] = {}
    for assignment in options.assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {assignment!r} is not KEY=VALUE, as in num.partitions=3")
        properties[key.strip()] = value.strip()
    check_known(properties)
    return properties


def data_dir(options: Options, properties: Mapping[str, str]) -> Path:
    """Where ottla.db lies: --data, or the first of log.dirs, or the user's own place."""
    if options.data is not None:
        return options.data
    log_dirs = properties.get("log.dirs") or properties.get("log.dir")
    return Path(log_dirs.split(",")[0].strip()) if log_dirs else default_data_dir()


def one_broker(options: Options) -> Settings:
    """The settings of a broker that is alone, or of number `options.node` of several."""
    properties = read_options(options)
    data = data_dir(options, properties)
    node = options.node
    if node is None:
        _refuse_several(data)
        if "log.dirs" not in properties and "log.dir" not in properties:
            properties["log.dirs"] = str(data)
    else:
        properties["log.dirs"] = str(data / f"node.{node}")
        properties["node.id"] = str(node)
    _refuse_controller(properties)
    config = BrokerConfig.from_properties(properties)
    shift = 0 if node is None else node - 1
    listen = _shifted(_listen(options, config, properties), shift)
    advertise = _advertise(options, config, properties, listen)
    if options.advertise is not None:
        advertise = _shifted(advertise, shift)
    http_place = options.http or DEFAULT_HTTP
    http = None if http_place == "off" else _shifted(parse_address(http_place, "--http"), shift)
    config = BrokerConfig.from_properties(_with_addresses(options, properties, listen, advertise))
    return Settings(
        config,
        str(data / STORE),
        listen,
        advertise,
        http,
        http_may_move=options.http is None,
        shares_store=node is not None,
    )


def _with_addresses(
    options: Options, properties: Mapping[str, str], listen: Address, advertise: Address
) -> dict[str, str]:
    """The properties as they would be had the addresses been set there: so that clients are shown what holds."""
    shown = dict(properties)
    if options.listen is not None or options.node is not None or "listeners" not in properties:
        shown["listeners"] = f"PLAINTEXT://{listen}"
    if options.advertise is not None:
        shown["advertised.listeners"] = f"PLAINTEXT://{advertise}"
    elif options.listen is not None:
        shown.pop("advertised.listeners", None)
    return shown


def _shifted(address: Address, by: int) -> Address:
    """The next ports belong to the next brokers; port 0 is any free one for each."""
    return Address(address.host, address.port + by if address.port else 0)


def _listen(options: Options, config: BrokerConfig, properties: Mapping[str, str]) -> Address:
    if options.listen is not None:
        return parse_address(options.listen, "--listen")
    if "listeners" not in properties:
        return DEFAULT_LISTEN
    return _listener_address(config.listeners, config.controller_listener_names, "listeners")


def _listener_address(listeners: Sequence[str], not_ours: Sequence[str], key: str) -> Address:
    """The one listener for clients, which is PLAINTEXT; those of a Kafka controller are left out."""
    ours = [entry for entry in listeners if entry.partition("://")[0] not in not_ours]
    if not ours:
        raise ConfigError(f"{key} has no listener for clients; add PLAINTEXT://127.0.0.1:9092")
    if len(ours) > 1:
        raise ConfigError(
            f"{key} has {len(ours)} listeners for clients ({', '.join(ours)}), and ottla opens one; keep one of them"
        )
    return parse_address(ours[0].partition("://")[2], key)


def _advertise(
    options: Options, config: BrokerConfig, properties: Mapping[str, str], listen: Address
) -> Address:
    """What clients are told. "Every address" is not one a client could come to, so it is never published."""
    if options.advertise is not None:
        told = parse_address(options.advertise, "--advertise")
    elif config.advertised_listeners and options.listen is None:
        told = _listener_address(
            config.advertised_listeners, config.controller_listener_names, "advertised.listeners"
        )
    else:
        host = socket.gethostname() if listen.host in _EVERYWHERE else listen.host
        return Address(host, listen.port)
    if told.host in _EVERYWHERE:
        raise ConfigError(f"{told} cannot be advertised: clients need a name or an address they can reach")
    return told


def _refuse_several(data: Path) -> None:
    if (data / "node.1").is_dir():
        raise ConfigError(
            f"{data} holds the data of several brokers (node.1, ...); start it with --brokers, "
            "or choose another --data"
        )


def refuse_one(data: Path) -> None:
    """Several brokers cannot take over what lies there for one."""
    if (data / "meta.properties").exists():
        raise ConfigError(
            f"{data} holds the data of one broker. To go on with several: stop it, choose a new directory with "
            "--data for --brokers, and copy the topics with `ottla consume` and `ottla produce`"
        )


def _refuse_controller(properties: Mapping[str, str]) -> None:
    roles = [role.strip() for role in properties.get("process.roles", "broker").split(",")]
    if "broker" not in roles:
        raise ConfigError(
            f"process.roles={properties['process.roles']} is that of a controller, which ottla does not have: "
            "it keeps what a controller knows in ottla.db; take the file of a broker"
        )


def notes(options: Options) -> Iterator[tuple[int, str]]:
    """What to say of the settings, with the level to say it at: each kind of key without effect in one line."""
    properties = read_options(options)
    inert, unknown = other_keys(properties)
    if unknown:
        yield logging.WARNING, f"neither ottla nor Kafka has these settings: {unknown_text(unknown)}"
    if inert:
        yield logging.WARNING, f"these settings of Kafka have no effect here: {', '.join(inert)}"
    config = BrokerConfig.from_properties(properties)
    entries = config.listeners if "listeners" in properties else ()
    for entry in entries:
        if entry.partition("://")[0] in config.controller_listener_names:
            yield (
                logging.INFO,
                f"{entry} is a controller's listener; ottla has no controller and does not open it",
            )
