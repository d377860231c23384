# The numbers inside of records, for all kernels. varints.py has the same where nothing is compiled.

from libc.limits cimport LLONG_MAX, LLONG_MIN


cdef inline bint overflows(long long base, long long delta) noexcept nogil:
    return base > LLONG_MAX - delta if delta > 0 else base < LLONG_MIN - delta


cdef inline unsigned long long zigzag(long long value) noexcept nogil:
    return (<unsigned long long>value << 1) ^ <unsigned long long>(value >> 63)


cdef inline Py_ssize_t varint_size(long long value) noexcept nogil:
    cdef unsigned long long bits = zigzag(value)
    cdef Py_ssize_t size = 1
    while bits >= 0x80:
        bits >>= 7
        size += 1
    return size
