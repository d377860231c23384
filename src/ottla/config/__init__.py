"""Every setting, with Kafka's name, type, default and check. docs/configuration.md is made from here."""

from ottla.config.broker_config import BROKER_KEYS, BrokerConfig
from ottla.config.log_config import TOPIC_KEYS, UNSUPPORTED_TOPIC_KEYS, LogConfig, effective
from ottla.config.properties import load_properties
from ottla.config.values import ConfigKey, Effective, parse, to_text

__all__ = [
    "BROKER_KEYS",
    "TOPIC_KEYS",
    "UNSUPPORTED_TOPIC_KEYS",
    "BrokerConfig",
    "ConfigKey",
    "Effective",
    "LogConfig",
    "effective",
    "load_properties",
    "parse",
    "to_text",
]
