"""Message sets of magic 0 and 1, and the ways between them and v2 batches."""
