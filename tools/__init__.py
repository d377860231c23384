"""Programs for those who work on ottla: what writes the classes of messages, and the checks of `make lint`."""
