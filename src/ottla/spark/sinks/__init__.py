"""Where rows go, and what a batch's commit is there."""
