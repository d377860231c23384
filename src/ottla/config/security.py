"""Refuses settings that ask for a guarded broker: ottla has no TLS, SASL or ACLs yet, nor serves openly by mistake.

A key that has no effect is a warning elsewhere. These are errors, because who sets them believes that nobody can read
or write without being asked who they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.errors import ConfigError

PLAINTEXT = "PLAINTEXT"
_PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_FAMILIES = ("ssl.", "sasl.", "delegation.token.", "oauth.")
_KEYS = frozenset(
    {
        "allow.everyone.if.no.acl.found",
        "authorizer.class.name",
        "connections.max.reauth.ms",
        "principal.builder.class",
        "security.providers",
        "super.users",
    }
)
_OPEN = "ottla has no TLS, SASL or ACLs and serves everybody who can reach it"


def is_security_key(key: str) -> bool:
    """Whether a key says how a broker is guarded, also when it says so of one listener (`listener.name.x.ssl...`)."""
    if key.startswith("listener.name."):
        key = key.split(".", 3)[-1]
        if ".sasl." in key:  # as in listener.name.x.scram-sha-256.sasl.jaas.config
            return True
    return key in _KEYS or key.startswith(_FAMILIES)


def refuse_security(properties: Mapping[str, str]) -> None:
    """ConfigError if any of the settings would be believed to guard the broker, and would not."""
    keys = sorted(key for key, value in properties.items() if value.strip() and is_security_key(key))
    protocol = properties.get("security.inter.broker.protocol", "").strip()
    if protocol and protocol != PLAINTEXT:
        keys.append(f"security.inter.broker.protocol={protocol}")
    if keys:
        named = ", ".join(keys)
        raise ConfigError(
            f"these settings would have no effect: {named}. {_OPEN}; take them out if that is meant"
        )
    for key in ("listeners", "advertised.listeners"):
        _refuse_listeners(key, properties)


def _refuse_listeners(key: str, properties: Mapping[str, str]) -> None:
    """A listener for clients is PLAINTEXT by its own name or by listener.security.protocol.map, or it is refused."""
    protocols = dict(zip(_PROTOCOLS, _PROTOCOLS, strict=True))
    protocols |= _protocol_map(properties.get("listener.security.protocol.map", ""))
    controllers = _parts(properties.get("controller.listener.names", ""))
    for entry in _parts(properties.get(key, "")):
        name, colon, _ = entry.partition("://")
        if name in controllers:
            continue
        if not colon:
            raise ConfigError(f"{key}: {entry} is not NAME://HOST:PORT, as in PLAINTEXT://127.0.0.1:9092")
        protocol = protocols.get(name.upper())
        if protocol is None:
            raise ConfigError(
                f"{key}: {entry} has a name that listener.security.protocol.map does not know; "
                f"add {name}:PLAINTEXT there, or call it PLAINTEXT"
            )
        if protocol != PLAINTEXT:
            raise ConfigError(
                f"{key}: {entry} is to be {protocol}. {_OPEN}; make it PLAINTEXT if that is meant"
            )


def _protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,NAME:PROTOCOL`, as Kafka writes it."""
    pairs = [part.partition(":") for part in _parts(text)]
    for name, _, protocol in pairs:
        if protocol.strip().upper() not in _PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: {name}:{protocol} is not NAME:PROTOCOL with one of "
                f"{', '.join(_PROTOCOLS)}"
            )
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
