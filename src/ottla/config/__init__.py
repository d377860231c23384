"""Every setting, with Kafka's name, type, default and check. docs/configuration.md is made from here."""

from ottla.config.log_config import TOPIC_KEYS, Effective, LogConfig, effective
from ottla.config.values import ConfigKey, parse

__all__ = ["TOPIC_KEYS", "ConfigKey", "Effective", "LogConfig", "effective", "parse"]
