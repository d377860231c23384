# The functions of kernel.py that are called in C, from there and from coalesce_kernel.py.

cdef int _frame(const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end) noexcept nogil

cdef int _read_v2(
    const unsigned char[::1] view, Py_ssize_t at, long long[::1] row, Py_ssize_t to
) noexcept nogil

cdef int _read_legacy(
    const unsigned char[::1] view, Py_ssize_t at, long long[::1] row, Py_ssize_t to
) noexcept nogil

cdef long long _legacy_null_keys(const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end) noexcept nogil

cdef long long _crc32c(const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t stop) except? -1 nogil

cdef long long _crc32c_with_gil(const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t stop) except? -1 nogil

cdef long long _legacy_crc(const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t stop) except? -1 nogil

cdef int scan_one(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t end,
    long long[::1] row,
    Py_ssize_t to,
    int flags,
) except? -1 nogil

# Status, position, size, base offset, last offset.
cdef (int, Py_ssize_t, long long, long long, long long) _find_batch(
    const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end, long long offset
) noexcept
