"""Imported first: makes the compiled modules known, or says why there are none."""

import os
import warnings

from ndx._lib.namesake import explanation, version_beside

_folder = os.path.dirname(os.path.dirname(__file__))
_other = version_beside(_folder)
if _other is not None:  # three levels up is what imports ndx
    warnings.warn(explanation(_other, _folder), RuntimeWarning, stacklevel=3)

try:
    from ndx._compiled import register
except ModuleNotFoundError as error:
    if error.name != "ndx._compiled":
        raise
    import sys

    _version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    _text = f"ndx can't be imported: {_folder} has no compiled modules for {_version}."
    if os.path.exists(os.path.join(_folder, "_core.pyx")):
        _text += (
            f" That is its source. Build it in {os.path.dirname(_folder)} (`make "
            "build`, or `pip install -e .`); or, if ndx is installed, start Python in "
            "another folder"
        )
    elif _other is not None:
        _text += f" In addition, {explanation(_other, _folder)}"
    else:
        _text += " Install it again: `pip install --force-reinstall ndxarray`"
    raise ImportError(_text, name="ndx", path=_folder) from None

register()
