"""Work on whole data directories as Spark jobs: the same results as the commands of `ottla log`, on many machines."""
