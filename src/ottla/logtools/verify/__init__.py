"""`ottla log verify`: every byte of a log checked, and what the files beside it say held against it."""
