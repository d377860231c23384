"""Consumer groups (KIP-848): heartbeats, members, assignment, and the change from and to classic groups."""
