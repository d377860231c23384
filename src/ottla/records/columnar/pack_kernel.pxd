# What pack_kernel.py has in C.

cdef class Packer:
    cdef bint _key_nulls
    cdef const unsigned char[::1] _key_valid
    cdef const int[::1] _key_offsets
    cdef const unsigned char[::1] _keys
    cdef bint _value_nulls
    cdef const unsigned char[::1] _value_valid
    cdef const int[::1] _value_offsets
    cdef const unsigned char[::1] _values
    cdef bint _has_headers
    cdef bint _list_nulls
    cdef const unsigned char[::1] _list_valid
    cdef const int[::1] _lists
    cdef const int[::1] _name_offsets
    cdef const unsigned char[::1] _names
    cdef bint _header_nulls
    cdef const unsigned char[::1] _header_valid
    cdef const int[::1] _header_offsets
    cdef const unsigned char[::1] _headers
    cdef bint _has_times
    cdef const long long[::1] _times
    cdef long long _base_time

    cdef long long _headers_of(self, Py_ssize_t row) noexcept

    cdef long long _time_delta(self, Py_ssize_t row) noexcept

    cdef long long _body_size(self, Py_ssize_t row, long long delta) noexcept

    cdef Py_ssize_t _put(self, unsigned char[::1] out, Py_ssize_t at, Py_ssize_t row, long long delta) noexcept
