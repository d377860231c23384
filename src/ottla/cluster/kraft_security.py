"""How a Kafka was guarded, as its controller has written it down: listeners, ACLs, SCRAM passwords, settings.

Every broker tells the controller its listeners with their security protocols when it starts, so the controller's log
knows what was in a server.properties that nobody has at hand any more.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.config.security import is_security_key
from ottla.internal_topics.fields import Reader

_REGISTER_BROKER, _UNREGISTER_BROKER = 0, 1
_SCRAM, _REMOVE_SCRAM, _ACL, _REMOVE_ACL = 11, 22, 18, 19
_ENDPOINT = {"name": "string", "host": "string", "port": "uint16", "protocol": "int16"}
_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


class KraftSecurity:
    """What the records up to now say about it."""

    def __init__(self) -> None:
        self._listeners: dict[int, list[str]] = {}  # of each broker, those that are not PLAINTEXT
        self._acls: set[str] = set()
        self._passwords: set[tuple[str, int]] = set()  # a user, and one of SCRAM's mechanisms

    def replay(self, kind: int, version: int, fields: Reader) -> None:
        if kind == _REGISTER_BROKER:
            self._register(version, fields)
        elif kind == _UNREGISTER_BROKER:
            self._listeners.pop(fields.value("int32"), None)
        elif kind == _ACL:
            self._acls.add(fields.value("uuid"))
        elif kind == _REMOVE_ACL:
            self._acls.discard(fields.value("uuid"))
        elif kind == _SCRAM:
            self._passwords.add((fields.value("string"), fields.value("int8")))
        elif kind == _REMOVE_SCRAM:
            self._passwords.discard((fields.value("string"), fields.value("int8")))

    def _register(self, version: int, fields: Reader) -> None:
        """What a broker said when it started takes the place of what it said before."""
        node = fields.value("int32")
        if version >= 2:
            fields.value("int8")  # whether it came from ZooKeeper
        fields.value("uuid")
        fields.value("int64")
        endpoints = fields.value([_ENDPOINT])
        self._listeners[node] = [
            f"{e['name']}://{e['host']}:{e['port']} ({_PROTOCOLS.get(e['protocol'], e['protocol'])})"
            for e in endpoints
            if e["protocol"] != 0
        ]

    def found(self, broker_configs: Mapping[str, Mapping[str, str]]) -> list[str]:
        """One line for each way in which the Kafka was guarded; none if it was open."""
        lines = [
            f"listener {listener} of broker {node}"
            for node, listeners in sorted(self._listeners.items())
            for listener in listeners
        ]
        if self._acls:
            lines.append(f"ACLs: {len(self._acls)}")
        users = sorted({user for user, _ in self._passwords})
        if users:
            lines.append(f"SCRAM passwords of {', '.join(users)}")
        keys = {key for config in broker_configs.values() for key in config if is_security_key(key)}
        if keys:
            lines.append(f"settings {', '.join(sorted(keys))}")
        return lines
