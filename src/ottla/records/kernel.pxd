# What gather_kernel.py calls in kernel.py without going through Python.

cdef int scan_one(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t end,
    long long[::1] row,
    Py_ssize_t to,
    int flags,
) except? -1 nogil
