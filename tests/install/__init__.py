"""ottla as users install it: into an empty environment, tried by a smoke run."""
