"""Regular expressions of topic names in the syntax of RE2, matched in linear time."""
