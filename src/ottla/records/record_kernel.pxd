# The functions of record_kernel.py that are called in C, from there and from other kernels.

cdef int check_bounds(Py_ssize_t start, Py_ssize_t end, Py_ssize_t size) except? -1

cdef (long long, Py_ssize_t, Py_ssize_t) read_field(
    const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end
) noexcept nogil

cdef Py_ssize_t _skip_headers(
    const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end, long long count
) noexcept nogil

# Position after the record, or minus the status (TRUNCATED, BAD_RECORD); timestamp delta; offset delta; key, its size
# (-1 for null); value, its size; first header, number of headers.
cdef (
    Py_ssize_t, long long, long long, Py_ssize_t, long long, Py_ssize_t, long long, Py_ssize_t, long long
) _any_record(const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end) noexcept nogil

cdef (
    Py_ssize_t, long long, long long, Py_ssize_t, long long, Py_ssize_t, long long, Py_ssize_t, long long
) read_record(const unsigned char[::1] view, Py_ssize_t start, Py_ssize_t end) noexcept nogil

# Status, index of the bad record, smallest and largest timestamp, index of the latter, records without a key.
cdef (int, long long, long long, long long, long long, long long) walk(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t end,
    long long count,
    long long base_timestamp,
    bint dense,
    long long last_delta,
) noexcept nogil

cdef (int, long long, long long, long long, long long, long long) walk_records(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t end,
    long long count,
    long long base_timestamp,
    bint dense,
    long long last_delta,
) noexcept

# Rows written, position after the last record, status.
cdef (Py_ssize_t, Py_ssize_t, int) _decode(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t end,
    long long base_offset,
    long long base_timestamp,
    long long[::1] row,
    Py_ssize_t room,
) noexcept nogil
