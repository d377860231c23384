"""`ottla spark`: jobs over whole data directories."""
