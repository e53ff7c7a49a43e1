cpdef object rolled(object x, object shift, object axis)
cpdef object tiled(object x, object repetitions)
