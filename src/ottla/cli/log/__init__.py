"""`ottla log`: a file for each command, and how logs are shown."""
