# What arrow_kernel.py has in C.

cdef bint _is_aborted(long long[::1] aborted, Py_ssize_t count, long long producer_id, long long offset) noexcept


cdef class Columns:
    cdef int _mask
    cdef long long _from_offset
    cdef long long _to_offset
    cdef Py_ssize_t _room
    cdef Py_ssize_t _header_room
    cdef Py_ssize_t _rows
    cdef long long[::1] _offsets
    cdef long long[::1] _timestamps
    cdef int[::1] _types
    cdef int[::1] _key_ends
    cdef unsigned char[::1] _key_bits
    cdef unsigned char[::1] _keys
    cdef Py_ssize_t _key_bytes
    cdef int[::1] _value_ends
    cdef unsigned char[::1] _value_bits
    cdef unsigned char[::1] _values
    cdef Py_ssize_t _value_bytes
    cdef int[::1] _list_ends
    cdef unsigned char[::1] _list_bits
    cdef int[::1] _name_ends
    cdef unsigned char[::1] _names
    cdef Py_ssize_t _name_bytes
    cdef int[::1] _data_ends
    cdef unsigned char[::1] _data_bits
    cdef unsigned char[::1] _data
    cdef Py_ssize_t _data_bytes
    cdef Py_ssize_t _headers
    cdef Py_ssize_t _null_keys
    cdef Py_ssize_t _null_values
    cdef Py_ssize_t _null_lists
    cdef Py_ssize_t _null_data
    cdef bint _plain_names
    # Where a batch that did not fit goes on: the position of its next record (0: at its start), records before that.
    cdef Py_ssize_t _resume_at
    cdef long long _resume_found
    # What the record that did not fit needs.
    cdef long long _key_need
    cdef long long _value_need
    cdef long long _header_need
    cdef long long _header_bytes_need

    cdef int _batch(self, const unsigned char[::1] view, long long[::1] row, Py_ssize_t at, Py_ssize_t start) noexcept

    cdef (long long, Py_ssize_t, int) _records(
        self,
        const unsigned char[::1] view,
        Py_ssize_t at,
        Py_ssize_t end,
        long long[::1] row,
        Py_ssize_t to,
    ) noexcept

    cdef int _message(
        self,
        const unsigned char[::1] view,
        long long[::1] row,
        Py_ssize_t at,
        Py_ssize_t start,
        long long offset_shift,
        long long timestamp,
        long long is_stamped,
    ) noexcept

    cdef bint _fits(
        self,
        long long key_size,
        long long value_size,
        long long header_count,
        long long header_bytes,
    ) noexcept

    cdef int _put(
        self,
        const unsigned char[::1] view,
        long long offset,
        long long timestamp,
        int kind,
        Py_ssize_t key,
        long long key_size,
        Py_ssize_t value,
        long long value_size,
    ) noexcept

    cdef int _put_headers(
        self,
        const unsigned char[::1] view,
        Py_ssize_t at,
        Py_ssize_t end,
        long long count,
    ) noexcept
