"""The classes of the options of compiled backends, and what is derived from them."""

__all__ = ["OptionsSignature", "UsualOptions"]


class UsualOptions:
    """A descriptor: the class of the options of every pool, once it is asked for."""

    def __get__(self, instance, owner):
        from ndx.backends._pool.options import PoolOptions

        return PoolOptions


class OptionsSignature:
    """The signature of compiled backends: the fields of the class `_options`.

    A descriptor, since a derived class may have a constructor, and a signature, of its
    own.
    """

    def __init__(self, *positional):
        self.positional = positional

    def __get__(self, instance, owner):
        maker = next(each for each in owner.__mro__ if "__init__" in vars(each))
        if "_options" not in vars(maker):
            msg = f"{maker.__name__} has a constructor of its own"
            raise AttributeError(msg)
        import inspect

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        positional = [inspect.Parameter(name, kind) for name in self.positional]
        fields = inspect.signature(owner._options).parameters.values()
        return inspect.Signature([*positional, *fields])
