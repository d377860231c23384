# The functions of check_kernel.py that are called in C.

cdef Py_ssize_t _note(
    long long[::1] found,
    Py_ssize_t room,
    Py_ssize_t used,
    long long kind,
    long long first,
    long long second,
    long long third,
) noexcept

cdef Py_ssize_t _check_order(
    long long[::1] row, Py_ssize_t index, long long[::1] kept, long long[::1] out, Py_ssize_t room, Py_ssize_t used
) noexcept

cdef Py_ssize_t _check_epoch(
    long long[::1] row,
    Py_ssize_t index,
    long long[::1] kept,
    long long[::1] known,
    Py_ssize_t epoch_count,
    long long[::1] out,
    Py_ssize_t room,
    Py_ssize_t used,
) noexcept

cdef bint _is_wrapper(long long[::1] row, Py_ssize_t at) noexcept
