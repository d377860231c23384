"""What a partition knows of its producers, and the snapshots of that on disk."""
