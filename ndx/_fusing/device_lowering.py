"""From the steps of a trace to a program of a device: kernels, reductions, arrays.

A kernel has the steps over elements of one shape that may share a stage
(`_fusing.lowering`). It reads and writes parts of arrays; all else is in the device's
registers. A reduction is a launch of its own, which reads an array. The engine of the
device makes the kernels, by a library of the device (`_cuda.fusing`).
"""

from typing import NamedTuple

import ndx._fusing.rules as rules
from ndx._fusing.lowering import Planner, grouped, needed
from ndx._fusing.stages import TooLarge
from ndx._fusing.steps import Part

# Bytes that CUDA passes to a kernel, some for the library apart. A part of an array
# takes a pointer, a size, lengths and strides; a scalar up to 16.
_PARAMETERS = 4000


class Leaf(NamedTuple):
    """A part of an array: the slot of the array, and bytes from its first element."""

    slot: int
    offset: int
    shape: tuple
    strides: tuple
    code: int


class KernelStep(NamedTuple):
    """One operation of a kernel.

    The operands and the target are pairs: ``("leaf", place in the kernel's leaves)``,
    ``("value", place in its scalars)`` or ``("register", any key)``.
    """

    name: str
    code: int
    into: int
    operands: tuple
    target: tuple


class Kernel(NamedTuple):
    """Steps over elements of one shape, in order; each leaf has that shape.

    The scalars are pairs: an element as bytes, or the position of one among the call's
    scalars; and the code of its dtype.
    """

    shape: tuple
    leaves: list
    scalars: list
    steps: list


class Reduction(NamedTuple):
    """A reduction over axes by an operation; the target has length 1 along them."""

    name: str
    code: int
    axes: tuple
    source: Leaf
    target: Leaf


class DeviceProgram(NamedTuple):
    """A recorded function for arrays on a device.

    Slots number arrays: the arguments, then the `made` ones, each (code of the dtype,
    shape, order of the axes in memory). `used` and `stored` are the arguments whose
    elements are read or written, and those that are written. `result` is what is
    returned, with slots in place of arrays; see `_fusing.lowering.Planner.returned`.
    """

    nargs: int
    used: list
    stored: list
    made: list
    launches: list
    result: tuple
    about: list


def plan_for_device(trace, nargs, result):
    """Return the `DeviceProgram` of a trace; the parameters are those of `plan`."""
    steps = needed(trace.steps, result)
    reduced = {id(step.target.buffer) for step in steps if step.reduces}
    # A reduction of elements needs no first value.
    steps = [x for x in steps if not (x.starts and id(x.target.buffer) in reduced)]
    for step in steps:
        if step.name == "cast" and rules.kind(step.code) == 4 != rules.kind(step.into):
            trace.refuse("it casts complex numbers to real ones")
    groups = [
        group for group in grouped(steps, reductions_alone=True) if 0 not in group.shape
    ]
    return _DevicePlanner(trace, nargs, result, groups).program()


class _DevicePlanner(Planner):
    """The launches of a program of a device."""

    def program(self):
        """Return the program."""
        launches, about = [], []
        for index, group in enumerate(self.groups):
            self.release(index)
            if group.alone:
                launch = self.reduction(group.steps[0])
                about.append(f"{launch.name} over axes {launch.axes} of {group.shape}")
            else:
                launch = self.kernel(group)
                names = " ".join(step.name for step in launch.steps)
                about.append(f"kernel over {group.shape}: {names}")
            launches.append(launch)
        self.check()
        return DeviceProgram(
            self.nargs, sorted(self.used), sorted(self.stored), self.made, launches,
            self.returned(self.result), [*about, self.about_arrays()],
        )  # fmt: skip

    def leaf(self, part, shape, *, written):
        """Return a part of an array."""
        self.use(part, written)
        slot, code = self.slot(part.buffer), part.buffer.code
        return Leaf(slot, part.offset, shape, part.strides, code)

    def reduction(self, step):
        """Return the launch of a reduction."""
        (source,), shape = step.sources, step.shape
        kept = step.target.buffer.shape
        axes = tuple(i for i, n in enumerate(shape) if kept[i] != n)
        target = step.target._replace(strides=step.target.buffer.strides)
        return Reduction(
            step.name, step.code, axes,
            self.leaf(source, shape, written=False),
            self.leaf(target, kept, written=True),
        )  # fmt: skip

    def kernel(self, group):
        """Return the launch of elementwise steps."""
        leaves, places, scalars, steps = [], {}, [], []

        def place(part, code, written):
            if type(part) is not Part:
                scalar = part[0], code
                if scalar not in scalars:
                    scalars.append(scalar)
                return "value", scalars.index(scalar)
            if self.is_register(part.buffer):
                return "register", id(part.buffer)
            leaf = self.leaf(part, group.shape, written=written)
            if leaf not in places:
                places[leaf] = len(leaves)
                leaves.append(leaf)
            return "leaf", places[leaf]

        for step in group.steps:
            operands = tuple(place(part, step.code, False) for part in step.sources)
            target = place(step.target, step.into, True)
            steps.append(KernelStep(step.name, step.code, step.into, operands, target))
        ndim = len(group.shape)
        nbytes = len(leaves) * (2 + 2 * ndim) * 8 + len(scalars) * 16 + (1 + ndim) * 8
        if nbytes > _PARAMETERS:
            msg = f"a kernel has {nbytes} bytes of parameters, more than {_PARAMETERS}"
            raise TooLarge(msg)
        return Kernel(group.shape, leaves, scalars, steps)
