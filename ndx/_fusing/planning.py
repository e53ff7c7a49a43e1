"""From the steps of a trace to a program: stages, registers, arrays.

The steps are put into stages, in which all steps walk over elements of one shape. Two
steps that touch the same buffer, one of them writing, may share a stage only if both
touch the same elements at the same time. Otherwise the later one belongs in a later
stage, before which all blocks of the former are done. So ``u[1:-1] = u[:-2] + u[2:]``
computes the sums in one stage, into an array, and stores them in the next.

A buffer that only one stage uses is no array: a few thousand elements of it at a time
are in a register. Steps have at most three operands and a result.
"""

from typing import NamedTuple

import ndx._fusing.rules as rules
from ndx._fusing.replay import Program
from ndx._fusing.stages import LIMITS, Stage, TooLarge, parts_of
from ndx._fusing.steps import Parameter, reach


class _Group(NamedTuple):
    """The steps of a stage."""

    shape: tuple
    steps: list


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
    kept = []
    _collect(result, kept)
    steps = _needed(trace.steps, {id(x.buffer) for x in kept})
    steps.sort(key=_waits)
    groups = [group for group in _grouped(steps) if 0 not in group.shape]
    return _Planner(trace, nargs, result, kept, groups).program()


def _collect(result, found):
    """Append the tracers of a result."""
    kind, value = result
    if kind == "array":
        found.append(value)
    elif kind in ("tuple", "list"):
        for item in value:
            _collect(item, found)
    elif kind == "dict":
        for _, item in value:
            _collect(item, found)


def _needed(steps, live):
    """Return the steps whose results are used."""
    kept = []
    for step in reversed(steps):
        if step.target.buffer.argument is None and id(step.target.buffer) not in live:
            continue
        live.update(id(part.buffer) for part in parts_of(step))
        kept.append(step)
    return kept[::-1]


def _waits(step):
    """Return False for what can come first: the start of a reduction's result.

    A stage between would separate the reduction from the steps that make its elements.
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
            # The elements that a reduction reads are as any; its result is complete
            # after the last block.
            result = (written and later.reduces) or (other_written and step.reduces)
            if same and not result:
                found = max(found, 1)
            elif not _apart(other, step.shape, part, later.shape):
                return 2
    return found


def _grouped(steps):
    """Put steps into stages, each as early as possible."""
    groups, placed = [], []
    for step in steps:
        earliest = 0
        for other, index in placed:
            relation = _relation(other, step)
            if relation:
                earliest = max(earliest, index + (relation == 2))
        index = next(
            (i for i in range(earliest, len(groups)) if groups[i].shape == step.shape),
            len(groups),
        )
        if index == len(groups):
            groups.append(_Group(step.shape, []))
        groups[index].steps.append(step)
        placed.append((step, index))
    return groups


class _Planner:
    """The arrays, constants and stages of one program."""

    def __init__(self, trace, nargs, result, kept, groups):
        self.trace, self.nargs, self.result, self.groups = trace, nargs, result, groups
        self.constants, self.parameters, self.known = [], [], {}
        self.made, self.slots = [], {}
        self.used, self.stored = set(), set()
        self.results = {id(x.buffer) for x in kept}
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

    def program(self):
        """Return the program."""
        kept = []
        _collect(self.result, kept)
        for x in kept:
            self.slot(x.buffer)
        stages = []
        for index, group in enumerate(self.groups):
            self.release(index)
            stages.append(Stage(self, index, group).described())
        result = self.returned(self.result)
        nslots = self.nargs + len(self.made)
        for name, count in (
            ("slots", nslots),
            ("constants", len(self.constants)),
            ("parameters", len(self.parameters)),
        ):
            if count > LIMITS[name]:
                msg = f"it needs {count} {name}; a program has at most {LIMITS[name]}"
                raise TooLarge(msg)
        return Program(
            self.nargs, sorted(self.used), sorted(self.stored), self.made,
            self.constants, self.parameters, stages, result, self.about(stages),
        )  # fmt: skip

    def about(self, stages):
        """Return the lines of an explanation."""
        lines = []
        for group, stage in zip(self.groups, stages, strict=True):
            names = " ".join(name for name, *_ in stage["steps"])
            count = stage["block_rows"] * stage["block_cols"]
            lines.append(
                f"stage over {group.shape}, {count} elements at a time, "
                f"{stage['registers']} registers: {names}"
            )
        inner = sum(id(b) not in self.results for b in self.slots.values())
        return [*lines, f"{len(self.made)} arrays made, {inner} of them temporary"]

    def returned(self, result):
        """Describe a result with slots in place of tracers."""
        kind, value = result
        if kind == "array":
            buffer = value.buffer
            slot = self.slot(buffer)
            if value.offset == 0 and (value.shape, value.strides) == (
                buffer.shape, buffer.strides
            ):  # fmt: skip
                return ("slot", slot)
            return ("view", slot, value.offset, value.shape, value.strides)
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
        self.made.append(made)
        slot = self.nargs + len(self.made) - 1
        if buffer is not None:
            self.slots[slot] = buffer
        return slot

    def release(self, index):
        """Let arrays that no stage from `index` on uses serve for others."""
        for slot, buffer in list(self.slots.items()):
            stages = self.uses.get(id(buffer), (set(),))[0]
            done = id(buffer) not in self.results and max(stages, default=-1) < index
            if done and slot not in self.free:
                self.free.append(slot)

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
