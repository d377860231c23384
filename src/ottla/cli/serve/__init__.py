"""`ottla serve`: settings, one broker process or several, and the help page."""
