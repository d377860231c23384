"""The kernels between batches and Arrow's columns."""
