"""How a client proves who it is and whom it trusts, by the option names of Kafka's clients.

Those of the Java client and of librdkafka are both taken. Certificates are PEM: Java's own stores are not read.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.client.scram import HASHES
from ottla.errors import ConfigError

PLAIN = "PLAIN"
MECHANISMS = (PLAIN, *HASHES)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS_PAIR = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;]+))")


@dataclass(frozen=True)
class Security:
    """What `Connection` needs to know. May be pickled; secrets are not shown."""

    tls: bool = False
    mechanism: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str | None = None
    ca_pem: str | None = None
    certificate_file: str | None = None
    certificate_pem: str | None = None
    key_file: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    verify: bool = True
    check_hostname: bool = True

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Security:
        """From `security.protocol`, `sasl.*` and `ssl.*`; other options are left alone."""
        protocol = options.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in _PROTOCOLS:
            raise ConfigError(f"security.protocol={protocol}: one of {', '.join(_PROTOCOLS)}")
        tls = _tls_options(options) if protocol.endswith("SSL") else {}
        mechanism, username, password = None, "", ""
        if protocol.startswith("SASL"):
            mechanism, username, password = _sasl_options(options)
        return cls(protocol.endswith("SSL"), mechanism, username, password, **tls)

    def context(self) -> ssl.SSLContext:
        """TLS as asked for."""
        context = ssl.create_default_context()
        context.check_hostname = self.check_hostname and self.verify
        context.verify_mode = ssl.CERT_REQUIRED if self.verify else ssl.CERT_NONE
        try:
            if self.ca_file or self.ca_pem:
                context.load_verify_locations(self.ca_file, cadata=self.ca_pem)
            if self.certificate_file:
                context.load_cert_chain(self.certificate_file, self.key_file, self.key_password)
            elif self.certificate_pem:
                self._load_pem(context)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"the certificates cannot be read: {error}") from error
        return context

    def _load_pem(self, context: ssl.SSLContext) -> None:
        """Python reads a client's certificate from a file only."""
        descriptor, path = tempfile.mkstemp(suffix=".pem")
        try:
            with open(descriptor, "w", encoding="ascii") as file:
                file.write(f"{self.key_pem or ''}\n{self.certificate_pem}\n")
            context.load_cert_chain(path, password=self.key_password)
        finally:
            os.unlink(path)


def _tls_options(options: Mapping[str, str]) -> dict[str, Any]:
    get = options.get
    for store in ("truststore", "keystore"):
        kind = get(f"ssl.{store}.type", "JKS" if get(f"ssl.{store}.location", "").endswith(".jks") else "PEM")
        if kind.upper() != "PEM":
            raise ConfigError(f"ssl.{store}.type={kind}: only PEM is read; keytool and openssl convert it")
    # A PEM key store of Java has the key and the certificates in one file.
    chain = get("ssl.certificate.location") or get("ssl.keystore.location")
    return {
        "ca_file": get("ssl.ca.location") or get("ssl.truststore.location"),
        "ca_pem": get("ssl.truststore.certificates") or get("ssl.ca.pem"),
        "certificate_file": chain,
        "certificate_pem": get("ssl.keystore.certificate.chain") or get("ssl.certificate.pem"),
        "key_file": get("ssl.key.location"),
        "key_pem": get("ssl.keystore.key") or get("ssl.key.pem"),
        "key_password": get("ssl.key.password"),
        "verify": get("enable.ssl.certificate.verification", "true").lower() != "false",
        "check_hostname": get("ssl.endpoint.identification.algorithm", "https").lower() not in ("", "none"),
    }


def _sasl_options(options: Mapping[str, str]) -> tuple[str, str, str]:
    mechanism = options.get("sasl.mechanism") or options.get("sasl.mechanisms") or "GSSAPI"
    if mechanism not in MECHANISMS:
        raise ConfigError(f"sasl.mechanism={mechanism}: one of {', '.join(MECHANISMS)}")
    jaas = dict(_jaas_pairs(options.get("sasl.jaas.config", "")))
    username = options.get("sasl.username", jaas.get("username"))
    password = options.get("sasl.password", jaas.get("password"))
    if username is None or password is None:
        raise ConfigError("SASL asks for sasl.username and sasl.password, or sasl.jaas.config with both")
    return mechanism, username, password


def _jaas_pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for name, double, single, bare in _JAAS_PAIR.findall(text):
        pairs.append((name, re.sub(r"\\(.)", r"\1", double or single or bare)))
    return pairs
