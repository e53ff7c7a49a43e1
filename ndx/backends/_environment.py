"""Options of backends that the environment gives: ``NDX_<NAME>_<OPTION>``."""

__all__ = ["check_names", "describe", "error_of", "is_of_environment", "read_options"]

_PREFIX = "NDX_"
_OTHERS = (
    *("NDX_BACKEND", "NDX_DEBUG_MEMORY", "NDX_IDLE_THREAD", "NDX_LIMIT"),
    *("NDX_NUM_THREADS", "NDX_OOM_REPORT", "NDX_TRACK", "NDX_WITHOUT_NUMPYS"),
)


def _or_none(read):
    return lambda text: None if text == "none" else read(text)


# Options that are not taken as they are written: how lower-case text is read, and what
# it has to be.
_NUMBER = "a number, nor 'none'"
_YES_OR_NO = (
    {"true": True, "1": True, "false": False, "0": False}.__getitem__,
    "'true' or 'false', 1 or 0",
)
_READERS = {
    "cutoff": (_or_none(int), _NUMBER),
    "hugepages": (str, "a word"),
    "idle_release": (_or_none(float), _NUMBER),
    "latency": (_or_none(float), _NUMBER),
    "lock": _YES_OR_NO,
    "numa": (_or_none(str), "a word"),
    "peer": (_or_none(int), _NUMBER),
    "pool": (str, "a word"),
    "prefetch": _YES_OR_NO,
    "reserve_fraction": (_or_none(float), _NUMBER),
}  # fmt: skip


def read_options(environment, kind):
    """Return the options of a kind of backend, and the variable that gives each.

    Raises
    ------
    ValueError
        If a variable is not what its option takes; it names the variable.
    """
    prefix = f"{_PREFIX}{kind.upper()}_"
    options, variables = {}, {}
    for name, text in environment.items():
        if not name.startswith(prefix):
            continue
        option = name[len(prefix) :].lower()
        variables[option] = name, text
        options[option] = text
        if option in _READERS:
            read, what = _READERS[option]
            try:
                options[option] = read(text.lower())
            except (ValueError, KeyError):
                msg = f"{name}={text!r} is not {what}"
                raise error_of(msg) from None
    return options, variables


def check_names(environment, kinds, all_options):
    """Raise ValueError for a variable that is a misspelt one of ndx.

    Others may begin with ``NDX_``, too: only what is close to a name is refused. A call
    of `all_options` returns the names of all options.
    """
    known = {kind.upper() for kind in kinds}
    unknown = [
        name
        for name in sorted(environment)
        if name.startswith(_PREFIX)
        and name not in _OTHERS
        and name.removeprefix(_PREFIX).partition("_")[0] not in known
    ]
    if not unknown:
        return
    # Imported here, since most programs set no such variable, and `import ndx` is to be
    # fast.
    from difflib import get_close_matches

    for name in unknown:
        kind, _, option = name.removeprefix(_PREFIX).partition("_")
        close = get_close_matches(name, _OTHERS, cutoff=0.85)
        meant = get_close_matches(kind, sorted(known), cutoff=0.7)
        if meant and get_close_matches(option.lower(), all_options(), cutoff=0.8):
            close += [f"{_PREFIX}{match}_{option}" for match in meant]
        if close:
            msg = (
                f"{name}={environment[name]!r} is not a variable of ndx; did you mean "
                f"{' or '.join(close)}?"
            )
            raise error_of(msg)


def error_of(reason):
    """Return the ValueError of a variable; the reason begins with its name."""
    error = ValueError(f"in the environment, {reason}")
    error.is_of_environment = True
    return error


def is_of_environment(error):
    """Whether an error already names the variable that caused it."""
    return getattr(error, "is_of_environment", False)


def describe(variables):
    """Return variables as messages show them."""
    return ", ".join(f"{name}={text!r}" for name, text in variables)
