"""`ottla pipeline`: run pipelines, look at them, and ask their tables questions."""
