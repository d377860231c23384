# The records that offset_map_kernel.py and compact_kernel.py have before them.

cdef (unsigned long long, unsigned long long) _siphash(
    const unsigned char[::1] view,
    Py_ssize_t at,
    Py_ssize_t size,
    unsigned long long key0,
    unsigned long long key1,
) noexcept nogil

cdef class Ahead:
    cdef unsigned long long key0, key1
    cdef long long[::1] rows
    cdef unsigned long long[::1] hashes

    cdef Py_ssize_t read(
        self,
        const unsigned char[::1] view,
        Py_ssize_t at,
        Py_ssize_t end,
        Py_ssize_t count,
        long long base_offset,
        long long base_timestamp,
        long long low,
        long long high,
    ) noexcept nogil
