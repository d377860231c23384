# What kernel.py calls in record_kernel.py without going through Python.

cdef int check_bounds(Py_ssize_t start, Py_ssize_t end, Py_ssize_t size) except? -1

cdef (int, long long, long long, long long, long long, long long) walk_records(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t end,
    long long count,
    long long base_timestamp,
    bint dense,
    long long last_delta,
) noexcept

cdef (int, long long, long long, long long, long long, long long) walk(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t end,
    long long count,
    long long base_timestamp,
    bint dense,
    long long last_delta,
) noexcept nogil
