"""What of CuPy is stood in for, by name."""

# As CuPy has them; NumPy has more.
FUNCTIONS = """
    abs absolute add all any arange arccos arccosh arcsin arcsinh arctan arctan2
    arctanh argmax argmin argsort array_split bitwise_and bitwise_or bitwise_xor
    broadcast_arrays broadcast_to ceil clip concatenate conj copysign copyto cos
    cosh count_nonzero cross cumprod cumsum diagonal diff divide einsum empty
    empty_like equal exp expand_dims expm1 eye flip floor floor_divide fmod full
    full_like greater greater_equal histogram hypot imag invert isfinite isin isinf
    isnan left_shift less less_equal linspace log log10 log1p log2 logaddexp
    logical_and logical_not logical_or logical_xor max maximum mean meshgrid min
    minimum matmul moveaxis multiply nanmean negative nextafter nonzero not_equal
    ones ones_like outer pad percentile positive power prod real reciprocal
    remainder repeat reshape result_type right_shift rint roll round searchsorted
    sign signbit sin sinh sort sqrt square squeeze stack std subtract sum swapaxes
    take take_along_axis tan tanh tensordot tile trace transpose tril triu trunc
    unique var where zeros zeros_like
"""
LINALG = """
    cholesky det eig eigh eigvals eigvalsh inv matrix_power matrix_rank norm pinv qr
    slogdet solve svd lstsq
"""
FFT = """
    fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift
    ifftshift
"""
AS_NUMPY = """
    bool_ intp int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64
    complex64 complex128 integer floating complexfloating inexact issubdtype finfo iinfo
    dtype pi e inf nan newaxis can_cast
"""
