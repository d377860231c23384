"""Lets Spark find format("ottla") by itself: it looks for modules named pyspark_*."""

from ottla.spark.source import OttlaSource as DefaultSource

__all__ = ["DefaultSource"]
