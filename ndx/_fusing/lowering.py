"""From the steps of a trace to a program: stages, registers, arrays.

The steps are put into stages, in which all steps walk over elements of one shape. Two
steps that touch the same buffer, one of them writing, may share a stage only if both
touch the same elements at the same time. Otherwise the later one belongs in a later
stage, before which all blocks of the former are done. So ``u[1:-1] = u[:-2] + u[2:]``
computes the sums in one stage, into an array, and stores them in the next.

A buffer that only one stage uses is no array: a thousand or two elements of it at a
time are in a register. Steps have at most three operands and a result, before chains
are made of them (`_fusing.chains`).
"""

from typing import NamedTuple

import ndx._fusing.rules as rules
from ndx._fusing.replay import Program
from ndx._fusing.scalars import Placeholder
from ndx._fusing.stages import LIMITS, Stage, TooLarge, parts_of
from ndx._fusing.steps import Parameter, reach
from ndx._lib.trees import leaves


class Group(NamedTuple):
    """The steps of a stage; whether no other step may join them."""

    shape: tuple
    steps: list
    alone: bool


def plan(trace, nargs, result):
    """Return the `Program` of a trace.

    Parameters
    ----------
    trace : Trace
    nargs : int
        Arrays among the arguments.
    result : tuple
        What the function returned, with tracers.
    """
    steps = needed(trace.steps, result)
    steps.sort(key=_waits)
    groups = [group for group in grouped(steps) if 0 not in group.shape]
    return _CpuPlanner(trace, nargs, result, groups).program()


def _tracers(result):
    """Return the tracers of a result."""
    return [x for x in leaves(result) if isinstance(x, Placeholder)][::-1]


def needed(steps, result):
    """Return the steps whose results are used."""
    live = {id(x._buffer) for x in _tracers(result)}
    kept = []
    for step in reversed(steps):
        if step.target.buffer.argument is None and id(step.target.buffer) not in live:
            continue
        live.update(id(part.buffer) for part in parts_of(step))
        kept.append(step)
    return kept[::-1]


def _waits(step):
    """Whether a step has to wait for others; not the start of a reduction's result.

    A stage between that and the reduction would separate the reduction from the steps
    that make its elements.
    """
    return not step.starts


def _apart(one, shape, other, other_shape):
    """Whether two parts of a buffer share no byte."""
    itemsize = rules.itemsize(one.buffer.code)
    a, b = reach(one, shape, itemsize), reach(other, other_shape, itemsize)
    return a[1] <= b[0] or b[1] <= a[0]


def _relation(step, later):
    """Return 0: no order is needed; 1: one stage will do; 2: later stage."""
    found = 0
    touched = [(step.target, True), *((part, False) for part in parts_of(step))]
    for part, written in [
        (later.target, True), *((part, False) for part in parts_of(later))
    ]:  # fmt: skip
        for other, other_written in touched:
            if part.buffer is not other.buffer or not (written or other_written):
                continue
            same = part == other and step.shape == later.shape
            # The elements that a reduction reads are ordinary; its result is complete
            # after the last block.
            result = (written and later.reduces) or (other_written and step.reduces)
            if same and not result:
                found = max(found, 1)
            elif not _apart(other, step.shape, part, later.shape):
                return 2
    return found


def grouped(steps, *, reductions_alone=False):
    """Put steps into stages, each as early as possible.

    Parameters
    ----------
    steps : list of Step
    reductions_alone : bool
        Whether each reduction is a stage of its own.
    """
    groups, placed = [], []
    for step in steps:
        alone = reductions_alone and step.reduces
        earliest = 0
        for other, index in placed:
            relation = _relation(other, step)
            if relation:
                apart = relation == 2 or alone or groups[index].alone
                earliest = max(earliest, index + apart)
        index = next(
            (i for i in range(earliest, len(groups))
             if groups[i].shape == step.shape and not (alone or groups[i].alone)),
            len(groups),
        )  # fmt: skip
        if index == len(groups):
            groups.append(Group(step.shape, [], alone))
        groups[index].steps.append(step)
        placed.append((step, index))
    return groups


class Planner:
    """The arrays of one program, and what its steps use."""

    # Whether results are numbers where the function's are. None is on a device.
    numbers = False

    def __init__(self, trace, nargs, result, groups):
        self.trace, self.nargs, self.result, self.groups = trace, nargs, result, groups
        self.made, self.slots = [], {}
        self.used, self.stored = set(trace.used), set()
        self.free = []
        self.buffers = list(trace.steps)  # keeps the ids of buffers
        # Where each buffer is used, and as which parts.
        self.uses = {}
        for index, group in enumerate(groups):
            for step in group.steps:
                for part in (step.target, *parts_of(step)):
                    use = self.uses.setdefault(id(part.buffer), (set(), set()))
                    use[0].add(index)
                    use[1].add((part.offset, part.strides))
                if step.reduces:
                    # The partial results of blocks are not the result.
                    self.uses[id(step.target.buffer)][0].update((-1, index))
        kept = _tracers(result)
        self.results = {id(x._buffer) for x in kept}
        for x in kept:
            self.slot(x._buffer)

    def use(self, part, written):
        """Note that a step reads or writes a part, if it is of an argument."""
        if part.buffer.argument is not None:
            self.used.add(part.buffer.argument)
            if written:
                self.stored.add(part.buffer.argument)

    def check(self, **counts):
        """Raise `TooLarge` if there is more of something than a program may have."""
        for name, count in {"slots": self.nargs + len(self.made), **counts}.items():
            if count > LIMITS[name]:
                msg = f"it needs {count} {name}; a program has at most {LIMITS[name]}"
                raise TooLarge(msg)

    def about_arrays(self):
        """Return the last line of an explanation."""
        inner = sum(id(b) not in self.results for b in self.slots.values())
        return f"{len(self.made)} arrays made, {inner} of them temporary"

    def returned(self, result):
        """Describe a result with slots in place of tracers."""
        kind, value = result
        if kind == "array":
            buffer = value._buffer
            slot = self.slot(buffer)
            if not value._is_view and value.shape == buffer.shape:
                found = ("slot", slot)
            else:
                found = ("view", slot, value._offset, value.shape, value.strides)
            return ("number", found) if self.numbers and value._is_number else found
        if kind in ("tuple", "list"):
            return (kind, [self.returned(item) for item in value])
        if kind == "dict":
            return (kind, [(key, self.returned(item)) for key, item in value])
        return result

    def is_register(self, buffer):
        """Whether a buffer is no array: one stage uses it, always the same elements."""
        if buffer.argument is not None or id(buffer) in self.results:
            return False
        stages, parts = self.uses[id(buffer)]
        return len(stages) == 1 and len(parts) == 1

    def slot(self, buffer):
        """Return the slot of an array of the program."""
        if buffer.argument is not None:
            return buffer.argument
        for slot, other in self.slots.items():
            if other is buffer:
                return slot
        made = (buffer.code, buffer.shape, buffer.order)
        for slot in self.free:
            if self.made[slot - self.nargs] == made and id(buffer) not in self.results:
                self.free.remove(slot)
                self.slots[slot] = buffer
                return slot
        return self.new_slot(made, buffer)

    def new_slot(self, made, buffer=None):
        """Return the slot of a new array."""
        self.check(axes=len(made[1]))
        self.made.append(made)
        slot = self.nargs + len(self.made) - 1
        if buffer is not None:
            self.slots[slot] = buffer
        return slot

    def release(self, index):
        """Free the slots of arrays that no stage from `index` on uses."""
        for slot, buffer in list(self.slots.items()):
            stages = self.uses.get(id(buffer), (set(),))[0]
            done = id(buffer) not in self.results and max(stages, default=-1) < index
            if done and slot not in self.free:
                self.free.append(slot)


class _CpuPlanner(Planner):
    """The stages of a program of the CPU."""

    numbers = True

    def __init__(self, *args):
        super().__init__(*args)
        self.constants, self.parameters, self.known = [], [], {}

    def program(self):
        """Return the program."""
        stages = []
        for index, group in enumerate(self.groups):
            self.release(index)
            stages.append(Stage(self, index, group).described())
        self.check(constants=len(self.constants), parameters=len(self.parameters))
        return Program(
            self.nargs, sorted(self.used), sorted(self.stored), self.made,
            self.constants, self.parameters, stages, self.returned(self.result),
            self.about(stages),
        )  # fmt: skip

    def about(self, stages):
        """Return the lines of an explanation."""
        lines = []
        for group, stage in zip(self.groups, stages, strict=True):
            names = " ".join(step.name for step in stage["steps"])
            count = stage["block_rows"] * stage["block_cols"]
            lines.append(
                f"stage over {group.shape}, {count} elements at a time, "
                f"{stage['registers']} registers: {names}"
            )
        return [*lines, self.about_arrays()]

    def constant(self, value):
        """Return the index of a constant."""
        if value not in self.known:
            self.known[value] = len(self.constants)
            if type(value) is Parameter:
                self.parameters.append(
                    (len(self.constants), value.position, value.code)
                )
                self.constants.append(b"")
            else:
                self.constants.append(value.value)
        return self.known[value]
