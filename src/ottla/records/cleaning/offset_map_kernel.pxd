# The functions of offset_map_kernel.py that are called in C, from there and from compact_kernel.py.

from ottla.records.cleaning.ahead_kernel cimport Ahead

cdef class OffsetMap:
    cdef Ahead ahead
    cdef unsigned long long[::1] _table
    cdef unsigned long long[::1] _touched
    cdef unsigned long long _slots
    cdef long long _max_slots
    cdef long long _entries
    cdef double _load_factor

    cdef bint _grow(self)

    cdef Py_ssize_t read_ahead(
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

    cdef int look_up(self, Py_ssize_t count) noexcept nogil

    cdef int _put_records(
        self,
        const unsigned char[::1] view,
        Py_ssize_t at,
        Py_ssize_t end,
        long long count,
        long long base_offset,
        long long first_offset,
        long long limit,
    ) noexcept nogil

    cdef int _put_row(
        self,
        const unsigned char[::1] view,
        long long shift,
        long long[::1] row,
        Py_ssize_t column,
        int action,
        long long first_offset,
        long long soft,
        long long hard,
    ) noexcept nogil

cdef bint is_plain(long long[::1] row, Py_ssize_t column, int action) noexcept nogil

cdef check_batches(data, shift, rows, start, count, actions)

cdef int _rehash(
    unsigned long long[::1] old,
    unsigned long long old_slots,
    unsigned long long[::1] new,
    unsigned long long slots,
) noexcept nogil

cdef Py_ssize_t _find(
    unsigned long long[::1] table,
    unsigned long long slots,
    unsigned long long hash0,
    unsigned long long hash1,
) noexcept nogil
