# The functions of compact_kernel.py that are called in C.

from ottla.records.cleaning.offset_map_kernel cimport OffsetMap

cdef Py_ssize_t _skip_varint(const unsigned char[::1] view, Py_ssize_t at) noexcept nogil

cdef Py_ssize_t _put_record(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t stop,
    long long time_delta,
    unsigned char[::1] out,
    Py_ssize_t to,
) noexcept nogil

cdef Py_ssize_t _put_empty(
    const unsigned char[::1] view, Py_ssize_t at, long long attributes, unsigned char[::1] out, Py_ssize_t to
) noexcept nogil

cdef int _put_header(
    const unsigned char[::1] view,
    Py_ssize_t at,
    long long attributes,
    long long base_timestamp,
    long long max_timestamp,
    long long count,
    unsigned char[::1] out,
    Py_ssize_t to,
    Py_ssize_t stop,
) noexcept nogil

# Status (DONE, BAD, TOO_FAR), position in `out` after what was written, records kept, tombstones among them, their
# largest timestamp.
cdef (int, Py_ssize_t, long long, long long, long long) _filter(
    OffsetMap offset_map,
    const unsigned char[::1] view,
    Py_ssize_t at,
    long long[::1] row,
    Py_ssize_t column,
    long long latest,
    bint keep_deletes,
    long long horizon,
    unsigned char[::1] out,
    Py_ssize_t to,
) noexcept nogil

cdef (int, Py_ssize_t, bint) _clean_batch(
    OffsetMap offset_map,
    const unsigned char[::1] view,
    Py_ssize_t at,
    long long[::1] row,
    Py_ssize_t column,
    int action,
    long long latest,
    long long now_ms,
    long long horizon,
    unsigned char[::1] out,
    Py_ssize_t to,
) noexcept nogil
