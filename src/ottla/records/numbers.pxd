# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# Numbers and bytes as they lie in batches and records, for all kernels. numbers.py has the same where nothing is
# compiled. Whoever calls has compared positions with the end already.

from libc.limits cimport LLONG_MAX, LLONG_MIN
from libc.string cimport memcpy


cdef inline long long read_int16(const unsigned char[::1] view, Py_ssize_t at) noexcept nogil:
    return <short>(view[at] << 8 | view[at + 1])


cdef inline long long read_uint32(const unsigned char[::1] view, Py_ssize_t at) noexcept nogil:
    return <unsigned int>view[at] << 24 | view[at + 1] << 16 | view[at + 2] << 8 | view[at + 3]


cdef inline long long read_int32(const unsigned char[::1] view, Py_ssize_t at) noexcept nogil:
    return <int>read_uint32(view, at)


cdef inline long long read_int64(const unsigned char[::1] view, Py_ssize_t at) noexcept nogil:
    return <long long>(<unsigned long long>read_uint32(view, at) << 32 | read_uint32(view, at + 4))


# Eight bytes, the lowest first.
cdef inline unsigned long long read_word(const unsigned char[::1] view, Py_ssize_t at) noexcept nogil:
    cdef unsigned long long word = 0
    cdef int index
    for index in range(8):
        word |= <unsigned long long>view[at + index] << (8 * index)
    return word


# A big-endian number of `size` bytes; the position after it.
cdef inline Py_ssize_t put_number(unsigned char[::1] out, Py_ssize_t at, long long value, int size) noexcept nogil:
    cdef int index
    for index in range(size):
        out[at + index] = value >> (8 * (size - 1 - index)) & 0xFF
    return at + size


# `size` bytes from `start` on, none if that is negative; the position after them in `out`.
cdef inline Py_ssize_t copy_bytes(
    const unsigned char[::1] view, Py_ssize_t start, long long size, unsigned char[::1] out, Py_ssize_t to
) noexcept nogil:
    if size <= 0:
        return to
    memcpy(&out[to], &view[start], size)
    return to + size


cdef inline bint overflows(long long base, long long delta) noexcept nogil:
    return base > LLONG_MAX - delta if delta > 0 else base < LLONG_MIN - delta


cdef inline unsigned long long zigzag(long long value) noexcept nogil:
    return (<unsigned long long>value << 1) ^ <unsigned long long>(value >> 63)


cdef inline long long unzigzag(unsigned long long bits) noexcept nogil:
    return <long long>(bits >> 1) ^ -<long long>(bits & 1)


cdef inline Py_ssize_t varint_size(long long value) noexcept nogil:
    cdef unsigned long long bits = zigzag(value)
    cdef Py_ssize_t size = 1
    while bits >= 0x80:
        bits >>= 7
        size += 1
    return size


cdef inline Py_ssize_t put_varint(unsigned char[::1] out, Py_ssize_t at, long long value) noexcept nogil:
    cdef unsigned long long bits = zigzag(value)
    while bits >= 0x80:
        out[at] = bits & 0x7F | 0x80
        bits >>= 7
        at += 1
    out[at] = <unsigned char>bits
    return at + 1


# The position after a read that failed: past every end.
cdef extern from *:
    Py_ssize_t FAR "PY_SSIZE_T_MAX"


cdef inline (long long, Py_ssize_t) read_long_varint(
    const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end, int width
) noexcept nogil:
    cdef unsigned long long bits = 0
    cdef unsigned long long byte
    cdef int shift = 0
    while at < end and shift < width:
        byte = view[at]
        at += 1
        if shift + 7 > width and byte >> (width - shift):
            break
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            return unzigzag(bits), at
        shift += 7
    return 0, FAR


# A zigzag varint of a number of `width` bits, 32 or 64: (value, position after it). Most take one or two bytes.
cdef inline (long long, Py_ssize_t) read_varint(
    const unsigned char[::1] view, Py_ssize_t at, Py_ssize_t end, int width
) noexcept nogil:
    cdef unsigned long long bits
    cdef unsigned long long byte
    if at < end:
        bits = view[at]
        if bits < 0x80:
            return unzigzag(bits), at + 1
        if at + 1 < end:
            byte = view[at + 1]
            if byte < 0x80:
                return unzigzag(bits + (byte << 7) - 0x80), at + 2
    return read_long_varint(view, at, end, width)


# A varint of one or two bytes, both of which may be read: (is it one, its bits, position after it).
cdef inline (bint, unsigned long long, Py_ssize_t) read_short(
    const unsigned char[::1] view, Py_ssize_t at
) noexcept nogil:
    cdef unsigned long long bits = view[at]
    cdef unsigned long long byte
    if bits < 0x80:
        return True, bits, at + 1
    byte = view[at + 1]
    if byte < 0x80:
        return True, bits + (byte << 7) - 0x80, at + 2
    return False, 0, at
