"""A row of the table of NumPy's methods, and the parameters that many of them have."""

from dataclasses import dataclass, field

__all__ = ["ANNOTATIONS", "PARAMETERS", "Method"]


@dataclass
class Method:
    """A row: a method's signature and its documentation.

    Parameters
    ----------
    name, signature : str
        NumPy's, without ``self``.
    what : str
        The first line of the docstring.
    example : str
        Lines of an interactive session after ``import ndx``.
    kind : str
        The annotation of what it returns.
    returns : tuple of str, optional
        The type in words, and what it is.
    annotations : dict
        Name -> annotation, where `ANNOTATIONS` does not say it.
    parameters : dict
        Name -> (type, text), where `PARAMETERS` does not say it.
    raises : tuple
        (Error, when) in the docstring, beside that for stale arrays.
    notes : tuple of str
        Lines of the section on differences.
    """

    name: str
    signature: str
    what: str
    example: str
    kind: str = "NDArray"
    returns: tuple[str, str] | None = ("NDArray", "")
    annotations: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, tuple[str, str]] = field(default_factory=dict)
    raises: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


PARAMETERS = {
    "axis": ("int or tuple of int, optional", "The axes; None: all of them."),
    "axes": ("int, or one tuple of int", "The new order of axes. Default: reversed."),
    "axis1": ("int", "The first axis."),
    "axis2": ("int", "The second axis."),
    "a_min": ("array_like, optional", "The least value."),
    "casting": ("str, default 'unsafe'", "Which conversions are allowed, as in NumPy."),
    "copy": ("bool, default True", "False: return the array itself where it fits."),
    "ddof": ("float, default 0", "The divisor is the number of elements minus this."),
    "decimals": ("int, default 0", "Decimal places; negative: left of the point."),
    "dtype": ("dtype, optional", "Of the result, and of the computation."),
    "initial": ("scalar, optional", "Where to start."),
    "keepdims": ("bool, default False", "Keep reduced axes, with length 1."),
    "kind": ("str, optional", "The algorithm, as in NumPy."),
    "mean": ("array_like, optional", "The mean, if it is known already."),
    "mode": ("{'raise', 'wrap', 'clip'}", "What to do with an index out of range."),
    "offset": ("int, default 0", "Which diagonal; above the main one if positive."),
    "order": ("{'C', 'F', 'A', 'K'}", "The order of the elements in memory."),
    "out": ("NDArray, optional", "Receives the result."),
    "shape": ("int, or one tuple of int", "The new shape; -1: what is left."),
    "where": ("array_like of bool", "Which elements take part."),
    "args": ("int, or one tuple of int", "The index. Default: of the only element."),
}
# Annotations, as ``ndx/_typing.pyi`` names the types; `Any` of all other parameters.
ANNOTATIONS = {
    "align": "bool | None",
    "axes": "Axes | None",
    "axis": "Axes | None",
    "axis1": "int",
    "axis2": "int",
    "casting": "Casting",
    "copy": "bool | None",
    "ddof": "float",
    "decimals": "int",
    "dtype": "DTypeLike",
    "file": "FilePath | BinaryIO",
    "format": "str",
    "fid": "FilePath | BinaryIO",
    "inplace": "bool",
    "keepdims": "bool",
    "kind": "SortKind | None",
    "mode": "IndexMode",
    "offset": "int",
    "out": "NDArray | None",
    "sep": "str",
    "shape": "Shape",
    "side": 'Literal["left", "right"]',
    "stable": "bool | None",
    "subok": "bool",
    "uic": "bool | None",
    "write": "bool | None",
}
