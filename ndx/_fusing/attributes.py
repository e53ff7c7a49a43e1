"""How Python finds attributes: in which class, and whether code of Python runs."""

import functools
import types

MISSING = object()


def in_classes(classes, name):
    """Return a name's value in the first class that has it; no descriptor is asked."""
    return next((c.__dict__[name] for c in classes if name in c.__dict__), MISSING)


def of_class(value, name):
    """Return a name's value in the class of an object, or in a class itself."""
    return in_classes((value if isinstance(value, type) else type(value)).__mro__, name)


def is_computed(value, name):
    """Whether code of Python may run when an attribute of a value is read."""
    is_type = isinstance(value, type)
    if is_type:
        others = [c for c in type(value).__mro__ if c not in (type, object)]
        if in_classes(others, name) is not MISSING:
            return True
    own = of_class(value, name)
    kind = type(own)
    if kind is property:
        return not is_type
    if kind is functools.cached_property and not is_type:
        # Once a cached property has been computed it is an ordinary attribute.
        return name not in object.__getattribute__(value, "__dict__")
    if kind in (classmethod, staticmethod):
        return type(own.__func__) is not types.FunctionType
    getter = in_classes(kind.__mro__, "__get__")
    if getter is MISSING:
        return False
    return issubclass(kind, property | classmethod | staticmethod) or not isinstance(
        getter, types.WrapperDescriptorType | types.MethodDescriptorType
    )
