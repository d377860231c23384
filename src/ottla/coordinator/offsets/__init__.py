"""The committed offsets of groups, and how much of them there may be."""
