"""Lets Spark find format("ottla") by itself: it looks for modules named pyspark_*."""

from ottla.spark.data_source import OttlaSource as DefaultSource

__all__ = ["DefaultSource"]
