"""What the cluster is: topics, brokers, leaders, settings; and the store that keeps it."""
