"""`ottla log show`: the picture of a log, drawn up without reading it through."""
