"""The commands that talk to any Kafka cluster: topics, groups, configs, produce, consume and so on."""
