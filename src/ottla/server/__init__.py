"""Sockets: the listener, the sessions on it, and the event loop they live on."""
