cpdef object engine_of(int device)
cdef object engine_for(object name, tuple values)
cdef object answer(object engine, object name, object found, bint is_one=*)
cpdef int one_device(object name, object values) except -1
cpdef int device_among(object value, int depth=*) except -1
cdef bint is_on_device(object x) noexcept
cdef bint any_on_device(tuple values)
