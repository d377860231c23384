"""The kernels of the cleaner: read ahead, remember the last offset of each key, write what stays."""
