"""Directories of real Kafka, as the tests of the log tools have them."""

from __future__ import annotations

from tests.logtools.conftest import kafka_dirs

__all__ = ["kafka_dirs"]
