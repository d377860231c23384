# What produce_kernel.py calls in request_kernel.py without going through Python.

cdef int read_int16(const unsigned char[::1] buf, Py_ssize_t at) noexcept

cdef long long read_int32(const unsigned char[::1] buf, Py_ssize_t at) noexcept

cdef Py_ssize_t read_stop(const unsigned char[::1] buf, Py_ssize_t position, Py_ssize_t end) noexcept

cdef read_string(frame, const unsigned char[::1] buf, Py_ssize_t position, Py_ssize_t stop)
