"""Imported first: explains the ImportError if the compiled modules are missing."""

try:
    import ndx._lib.dtypes  # noqa: F401
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("ndx."):
        raise
    import sys
    from pathlib import Path

    _folder = Path(__file__).parents[1]
    _version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    _text = f"ndx can't be imported: {_folder} has no compiled modules for {_version}."
    if (_folder / "_core.pyx").exists():
        _text += (
            f" That is its source. Build it in {_folder.parent} (`make build`, or `pip "
            "install -e .`); or, if ndx is installed, start Python in another folder"
        )
    else:
        _text += " Install it again: `pip install --force-reinstall ndx`"
    raise ImportError(_text, name="ndx", path=str(_folder)) from None
