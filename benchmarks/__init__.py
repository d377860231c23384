"""Ratios of speed: ottla beside bare loops and beside Apache Kafka, both in one run."""
