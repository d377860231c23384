"""`ottla log repair`: a plan of what would mend a log, and carrying it out."""
