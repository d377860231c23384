# What kernel.py and records/columnar/arrow_kernel.py call in record_kernel.py without going through Python.

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

cdef (long long, Py_ssize_t, Py_ssize_t) read_field(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t end,
) noexcept nogil

cdef (
    Py_ssize_t, long long, long long, Py_ssize_t, long long, Py_ssize_t, long long, Py_ssize_t, long long
) read_record(
    const unsigned char[::1] view,
    Py_ssize_t start,
    Py_ssize_t end,
) noexcept nogil
