"""Registration with other libraries when they are imported.

Some libraries ask a table which function computes on which class of arrays, and offer
no entry point by which another package can fill in that table. A finder at the start of
`sys.meta_path` waits for the modules that hold these tables. It finds nothing itself:
it lets the other finders find the module and, after the module has run, calls
``register()`` of one of ours. Other imports pay for one look into a dict.
"""

import contextlib
import importlib
import sys
import warnings

__all__ = ["register_on_import"]

# Our modules whose import of a library has triggered their own registration. They had
# not run to their end then, so they register at their end.
_waiting = set()

# By library that was still being imported when ndx was: our module that registers with
# it. No hook runs at the end of that import; the next import after it registers.
_begun = {}


class _Loader:
    """Loads a library by the loader found for it, then calls our ``register()``."""

    def __init__(self, loader, ours):
        self._loader = loader
        self._ours = ours

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # From here on, nothing shows that another loader was in between.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        if module.__name__ != self._ours or self._ours in _waiting:
            _waiting.discard(self._ours)
            _register(self._ours)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _Finder:
    """Wraps the loaders of the libraries in a table; other finders find the modules."""

    def __init__(self, table):
        self._table = table

    def find_spec(self, name, path=None, target=None):
        if _begun:
            _register_ended()
        ours = self._table.get(name)
        if ours is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, ours)
                return spec
        return None


def _register(ours):
    """Call ``register()`` of one of our modules; its failure is only a warning."""
    name, *arguments = ours.split()
    try:
        module = importlib.import_module(name)
        if not hasattr(module, "register"):  # it is being imported
            _waiting.add(name)
            return
        module.register(*arguments)
    except Exception as error:
        warnings.warn(
            f"{name} could not register NDArrays ({type(error).__name__}: {error}); "
            f"the library works without",
            RuntimeWarning,
            stacklevel=2,
        )


def _is_being_imported(name):
    """Whether a module of `sys.modules` has not run to its end yet."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return getattr(spec, "_initializing", False)


def _register_ended():
    """Register with the libraries of `_begun` whose import has ended."""
    for name in [name for name in list(_begun) if not _is_being_imported(name)]:
        ours = _begun.pop(name, None)
        if ours is not None and sys.modules.get(name) is not None:
            _register(ours)


def _chosen(table, names):
    """Return the part of a table for the libraries that a user names."""
    known = {name.partition(".")[0] for name in table}
    given = {name.strip() for name in names.split(",")} - {""}
    if given <= {"all"}:
        return table
    if given == {"none"}:
        return {}
    if not given <= known:
        raise ValueError(
            f"in the environment, NDX_ADAPTERS={names!r} must be 'all', 'none' or some "
            f"of these libraries, with commas: {', '.join(sorted(known))}"
        )
    return {name: table[name] for name in table if name.partition(".")[0] in given}


def register_on_import(table, names="all"):
    """Have modules of ours register with others as soon as these have been imported.

    Parameters
    ----------
    table : dict of str to str
        The names of other libraries' modules, and of the module of ours for each, whose
        ``register()`` is called: at once, if the other has been imported already. Words
        after the name of a module of ours are its arguments.
    names : str
        The libraries for which this is done, separated by commas; "all" or "none".

    Raises
    ------
    ValueError
        For a name of a library that is not in the table.
    """
    table = _chosen(table, names)
    # None: the import is forbidden.
    present = [name for name in table if sys.modules.get(name) is not None]
    for name in filter(_is_being_imported, present):
        # Another thread may be importing it: this waits for the end, which may be an
        # error there.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    waiting = {name: table[name] for name in table if name not in present}
    waiting |= {ours: ours for ours in table.values() if ours not in sys.modules}
    _begun.update({name: table[name] for name in present})
    if waiting or _begun:
        sys.meta_path.insert(0, _Finder(waiting))
    _register_ended()
