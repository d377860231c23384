"""What each request does: one file per family, found through the registry."""
