"""Kafka's wire protocol, without any input or output: bytes to requests, responses to bytes."""
