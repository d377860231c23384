"""Opening a log directory and the logs in it: finish or undo what a crash interrupted, and notice what is missing."""
