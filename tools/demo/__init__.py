"""`make demo`: what ottla does, shown in a minute."""
