"""Advice for names of NumPy that ndx lacks or names differently."""

__all__ = ["missing_name"]

# Names in NumPy's modules -> the equivalent in ndx.
_ELSEWHERE = {
    "": {
        "absolute": "ndx.abs",
        "amax": "ndx.max",
        "amin": "ndx.min",
        "arccos": "ndx.acos",
        "arccosh": "ndx.acosh",
        "arcsin": "ndx.asin",
        "arcsinh": "ndx.asinh",
        "arctan": "ndx.atan",
        "arctan2": "ndx.atan2",
        "arctanh": "ndx.atanh",
        "around": "ndx.round or, to decimals, round(x, 2)",
        "array": "ndx.asarray; with copy=True it never shares memory",
        "array_equal": "ndx.all(x == y)",
        "ascontiguousarray": "ndx.asarray(x, order='C')",
        "asfortranarray": "ndx.asarray(x, order='F')",
        "average": "ndx.mean",
        "bitwise_not": "ndx.bitwise_invert",
        "bool_": "ndx.bool",
        "column_stack": "ndx.stack(arrays, axis=1)",
        "concatenate": "ndx.concat",
        "conjugate": "ndx.conj",
        "copy": "ndx.asarray(x, copy=True)",
        "cross": "ndx.linalg.cross",
        "cumprod": "ndx.cumulative_prod",
        "cumsum": "ndx.cumulative_sum",
        "diagonal": "ndx.linalg.diagonal",
        "divmod": "x // y and x % y",
        "dot": "ndx.matmul, or ndx.vecdot of vectors",
        "double": "ndx.float64",
        "dstack": "ndx.concat(arrays, axis=2)",
        "fabs": "ndx.abs",
        "fix": "ndx.trunc",
        "float_power": "ndx.pow",
        "fmod": "ndx.remainder",
        "hstack": "ndx.concat(arrays, axis=1)",
        "identity": "ndx.eye",
        "inner": "ndx.vecdot",
        "int_": "ndx.int64",
        "invert": "ndx.bitwise_invert",
        "left_shift": "ndx.bitwise_left_shift",
        "mod": "ndx.remainder",
        "ndarray": "ndx.NDArray, made by ndx.asarray, ndx.empty, ...",
        "outer": "ndx.linalg.outer",
        "power": "ndx.pow",
        "product": "ndx.prod",
        "ravel": "ndx.reshape(x, (-1,))",
        "right_shift": "ndx.bitwise_right_shift",
        "rint": "ndx.round",
        "row_stack": "ndx.concat(arrays, axis=0)",
        "size": "x.size",
        "swapaxes": "ndx.moveaxis or ndx.permute_dims",
        "trace": "ndx.linalg.trace",
        "transpose": "ndx.permute_dims, x.T or x.mT",
        "true_divide": "ndx.divide",
        "unique": "ndx.unique_values, unique_counts, unique_inverse or unique_all",
        "vstack": "ndx.concat(arrays, axis=0)",
    },
    "linalg": {
        "dot": "ndx.matmul",
        "multi_dot": "a @ b @ c",
        "norm": "ndx.linalg.vector_norm or ndx.linalg.matrix_norm",
    },
    "random": {
        name: f"ndx.random.default_rng().{method}"
        for name, method in {
            "choice": "choice",
            "normal": "normal",
            "permutation": "permutation",
            "rand": "random",
            "randint": "integers",
            "randn": "standard_normal",
            "random": "random",
            "seed": "random; the seed is an argument: default_rng(seed)",
            "shuffle": "shuffle",
            "standard_normal": "standard_normal",
            "uniform": "uniform",
        }.items()
    },
}

# Modules for users that `import ndx` does not import.
_MODULES = ("distributed", "numpy")


def missing_name(module, name):
    """Return the AttributeError for a missing name of a module of ndx.

    For a name of NumPy the message gives the equivalent in ndx.
    """
    inside = module.partition(".")[2]
    here = _ELSEWHERE[inside].get(name)
    text = f"module {module!r} has no attribute {name!r}"
    if not inside and name in _MODULES:
        text += f" until it is imported: import {module}.{name}"
        return AttributeError(text, name=name, obj=None)
    if here is None:
        # Without `name=`, Python itself suggests a similar name.
        return AttributeError(text)
    return AttributeError(f"{text}; here it is {here}", name=name, obj=None)
