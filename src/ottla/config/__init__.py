"""Every setting, with Kafka's name, type, default and check. docs/configuration.md is made from here."""

from ottla.config.broker_config import BROKER_KEYS, DYNAMIC_BROKER_KEYS, INTERNAL_KEYS, BrokerConfig
from ottla.config.group_config import GROUP_KEYS, GroupConfig, check_group_config
from ottla.config.kafka_keys import INERT_KEYS, check_known, other_keys, unknown_text
from ottla.config.log_config import TOPIC_KEYS, UNSUPPORTED_TOPIC_KEYS, LogConfig, effective
from ottla.config.properties import load_properties
from ottla.config.values import ConfigKey, Effective, parse, resolve, to_text

__all__ = [
    "BROKER_KEYS",
    "DYNAMIC_BROKER_KEYS",
    "GROUP_KEYS",
    "INERT_KEYS",
    "INTERNAL_KEYS",
    "TOPIC_KEYS",
    "UNSUPPORTED_TOPIC_KEYS",
    "BrokerConfig",
    "ConfigKey",
    "Effective",
    "GroupConfig",
    "LogConfig",
    "check_group_config",
    "check_known",
    "effective",
    "load_properties",
    "other_keys",
    "parse",
    "resolve",
    "to_text",
    "unknown_text",
]
