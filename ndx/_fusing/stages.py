"""One stage of a program: its walk, leaves, registers, steps and blocks.

A leaf is a part of an array. A register is a buffer that only this stage uses: a
thousand or two elements of it at a time are in the CPU's cache.
"""

import math
from collections import Counter

import ndx._fusing.rules as rules
from ndx._compute.costs import CYCLES, stage_time
from ndx._fusing.chains import Lowered, chained, may_chain
from ndx._fusing.replay import limits
from ndx._fusing.steps import Constant, Part, identity

LIMITS = limits()
REGISTER, LEAF, CONSTANT, PARTIAL = range(4)
# Elements of a block. Fewer make the calls of the loops count, more leave the cache.
_MOST_ELEMENTS = 1024
_LEAST_ELEMENTS = 64
# Bytes of leaves that come from memory each time, where longer runs are faster: of five
# arrays of 8 MB, 1.2 times as fast on two threads.
_CACHED = 16 << 20
# Elements: a row of fewer is not worth a call of a chain.
_SHORT_CHAIN = 512
# Elements that a thread takes at a time, about: a quarter of all within these bounds.
# The first of each block take longer: the processor has to guess the steps of a chain.
_SHARES = 1024, 4096
# Cycles that a step takes for an element: a byte of an operand, an order of a chain.
_BYTE, _ORDER = 0.0133, 0.15


def _ceil(count, size):
    """Return how many pieces of a size hold `count` elements."""
    return -(-count // size)


class TooLarge(Exception):
    """The program exceeds a limit of `_fusing.replay`."""


def parts_of(step):
    """Return the parts that a step reads."""
    return [part for part in step.sources if type(part) is Part]


class Stage:
    """One stage: its leaves, steps and registers."""

    def __init__(self, planner, index, group):
        self.planner, self.index = planner, index
        self.shape = group.shape
        self.steps = _forwarded(planner, group.steps)
        self.partials = []
        self.serial = False
        self.by_rows = False

    def described(self):
        """Return the stage in the form that `Program` takes."""
        parts = []
        for step in self.steps:
            for part in (step.target, *parts_of(step)):
                if not self.planner.is_register(part.buffer) and part not in parts:
                    parts.append(part)
        if len(parts) > LIMITS["leaves"]:
            most = LIMITS["leaves"]
            msg = f"a stage uses {len(parts)} parts of arrays, more than {most}"
            raise TooLarge(msg)
        self.walk(parts)
        self.pitch = self.common_pitch()
        lowered = self.lowered()
        registers, bytes_each = _allocate(lowered)
        rows, cols, room = self.blocks(registers, bytes_each)
        self.finish_partials(rows, cols)
        share = _ceil(self.share(), rows * cols)
        if self.by_rows:
            # All blocks of a row add to one element of a result.
            share = _ceil(share, _ceil(self.cols, cols)) * _ceil(self.cols, cols)
        # Blocks that add to the same elements of a result run one after the other.
        return {
            "shape": self.outer, "cols": self.cols, "plane": self.plane(),
            "block_rows": rows,
            "block_cols": cols, "register_bytes": room,
            "serial": self.serial, "work": self.work(lowered),
            "pitch": self.pitch, "share": share,
            "leaves": [
                (self.planner.slot(x.buffer), x.offset, strides, self.has_pitch(i))
                for i, (x, strides) in enumerate(
                    zip(self.parts, self.strides, strict=True)
                )
            ],
            "steps": [
                step._replace(operands=[_operand(x) for x in step.operands])
                for step in lowered
            ],
            "partials": self.partials, "registers": registers,
        }  # fmt: skip

    def share(self):
        """Return about how many elements a thread takes at a time."""
        least, most = _SHARES
        return min(max(least, math.prod(self.shape) // 4), most)

    def work(self, lowered):
        """Return about how many nanoseconds the steps take."""
        each = 0.0
        for step in lowered:
            if step.name in CYCLES:
                each += CYCLES[step.name]
            elif step.chain:
                each += _ORDER * len(step.chain[1])
            else:
                each += _BYTE * len(step.operands) * rules.itemsize(step.code)
        return stage_time(math.prod(self.shape), each)

    # ---- The walk

    def walk(self, parts):
        """Order the axes for sequential access, and merge them where possible."""
        self.parts = parts
        written = [part for step in self.steps for part in parts if part is step.target]
        # Those that are written decide the order of the axes first.
        operands = [part.strides for part in [*parts, *parts[::-1], *written[::-1]]]
        shape, strides = rules.merged_axes(tuple(self.shape), operands)
        shape = list(shape)
        self.cols = shape.pop() if shape else 1
        self.outer = shape
        if len(shape) >= LIMITS["axes"]:
            msg = f"it has more than {LIMITS['axes']} axes"
            raise TooLarge(msg)
        self.strides = [kept or (0,) for kept in strides[: len(parts)]]
        # Leaves that chains don't take: those of a row are neither one nor one value.
        self.strided = {
            i for i, part in enumerate(parts)
            if self.strides[i][-1] not in (0, rules.itemsize(part.buffer.code))
        }  # fmt: skip

    def common_pitch(self):
        """Return the elements from one row of most leaves to the next, or 0.

        Rows that lie at one distance in all leaves are computed together, with the few
        elements between them, which nobody reads. A stencil's leaves are such.
        """
        self.stored = [step.target.buffer for step in self.steps]
        pitches = Counter()
        for index in range(len(self.parts)):
            pitch = self.pitch_of(index)
            if self.cols < pitch <= self.cols * 5 // 4 + 2:
                pitches[pitch] += self.reads(index)
        for pitch, reads in pitches.most_common(1):
            if reads > 1 and 2 * pitch <= _MOST_ELEMENTS:
                return pitch
        return 0

    def pitch_of(self, index):
        """Return the elements from one row of a leaf to the next; 0: it is written."""
        part, strides = self.parts[index], self.strides[index]
        itemsize = rules.itemsize(part.buffer.code)
        if not self.outer or strides[-1] != itemsize or strides[-2] % itemsize:
            return 0
        if any(part.buffer is buffer for buffer in self.stored):
            return 0
        return strides[-2] // itemsize

    def has_pitch(self, index):
        """Whether the rows of a leaf lie at the common distance."""
        return self.pitch > 0 and self.pitch_of(index) == self.pitch

    # ---- The steps

    def lowered(self):
        """Return the steps with their operands, short rows gathered, in chains."""
        lowered, gathered = [], {}
        for step in self.steps:
            operands = []
            for source in step.sources:
                if type(source) is not Part:
                    operands.append(("constant", self.planner.constant(source)))
                elif self.planner.is_register(source.buffer):
                    operands.append(("register", source.buffer, source.buffer.code))
                else:
                    operands.append(self.leaf(source, step, lowered, gathered))
            operands += self.target(step, operands, lowered, gathered)
            if step.reduces:
                operands = [operands[1], operands[0], operands[1]]
            place = operands[-1]
            lowered.append(
                Lowered(step.name, step.code, step.into, operands, step.reduces)
            )
            if place[0] == "gathered":
                # The registers of a stored row go to their leaf.
                lowered.append(_copied(step.into, place, place[3]))
        few = math.prod(self.shape) < LIMITS["tile"]
        return lowered if few else chained(lowered, self.strided)

    def is_short(self, index):
        """Whether a leaf is better copied than read in place.

        Loops are not called for a few elements at a time.
        """
        code = self.parts[index].buffer.code
        inner = self.strides[index][-1]
        least = _SHORT_CHAIN if self.in_chain(index) else LIMITS["short_row"]
        short = math.prod(self.outer) > 1 and self.cols < least
        if short and not (self.is_flat(index) or self.has_pitch(index)):
            return True
        return inner not in (0, rules.itemsize(code)) and self.reads(index) > 1

    def in_chain(self, index):
        """Whether a step that may be in a chain reads or writes a leaf."""
        part = self.parts[index]
        return index not in self.strided and any(
            part in (step.target, *parts_of(step)) and may_chain(step)
            for step in self.steps
        )

    def is_flat(self, index):
        """Whether the rows of a leaf follow one another like the elements of one."""
        if self.pitch:
            return False
        shape, strides = (*self.outer, self.cols), self.strides[index]
        return all(
            strides[axis] == strides[axis + 1] * shape[axis + 1]
            for axis in range(len(self.outer))
        )

    def reads(self, index):
        """Return how often a leaf is read."""
        part = self.parts[index]
        return sum(parts_of(step).count(part) for step in self.steps)

    def leaf(self, part, step, lowered, gathered):
        """Return the operand for a part that is read; gather it first if that pays."""
        index = self.parts.index(part)
        place = ("leaf", index, part.buffer.code)
        self.planner.use(part, written=False)
        if not self.is_short(index) or (len(step.sources) == 1 and step.name == "copy"):
            return gathered.get(part, place)
        if part not in gathered:
            gathered[part] = ("gathered", object(), part.buffer.code, place)
            code = part.buffer.code
            lowered.append(_copied(code, place, gathered[part]))
        return gathered[part]

    def target(self, step, operands, lowered, gathered):
        """Return the operand that a step writes, as a list."""
        part, code = step.target, step.target.buffer.code
        if self.planner.is_register(part.buffer):
            return [("register", part.buffer, code)]
        index = self.parts.index(part)
        self.planner.use(part, written=True)
        place = ("leaf", index, code)
        if step.reduces:
            return [self.reduction(step, index, place)]
        gathered.pop(part, None)
        if not self.is_short(index) or (
            step.name == "copy" and operands[0][0] != "leaf"
        ):
            return [place]
        gathered[part] = ("gathered", object(), code, place)
        return [gathered[part]]

    def reduction(self, step, index, place):
        """Return where a reduction is accumulated."""
        *outer, inner = self.strides[index]
        if inner or any(outer):
            # Rows that each have an element of their own may be on several threads.
            self.by_rows = True
            self.serial |= inner != 0 or not all(outer)
            return place
        slot = self.planner.slot(step.target.buffer)
        start = Constant(_start_of(step))
        constant = self.planner.constant(start)
        self.partials.append([None, slot, constant, step.name, step.code])
        return ("partial", len(self.partials) - 1, step.code)

    # ---- The blocks

    def blocks(self, registers, each):
        """Return rows and columns of a block, and the bytes of a register."""
        sums = any(step.reduces for step in self.steps)
        most = _MOST_ELEMENTS if registers or sums else self.share()
        total = math.prod(self.outer)
        if len(self.parts) * total * self.cols * each > _CACHED:
            most *= 2
        if registers:
            most = min(most, LIMITS["scratch"] // (registers * each) // 64 * 64)
        if most < _LEAST_ELEMENTS:
            msg = f"it needs {registers} intermediate values at a time"
            raise TooLarge(msg)
        if self.cols >= most:
            parts = _ceil(self.cols, most)
            cols = min(_ceil(_ceil(self.cols, parts), 64) * 64, most)
            return 1, cols, most * each
        width = max(self.cols, self.pitch)
        # Blocks of one size, which may exceed the best one by a quarter.
        room = most * 5 // 4
        if registers:
            room = min(room, LIMITS["scratch"] // (registers * each) // 64 * 64)
        plane = self.plane()
        pieces = max(_ceil(plane * width, room), _ceil(plane, LIMITS["rows"]))
        while pieces < plane and _ceil(plane, pieces) * width > room:
            pieces += 1
        return _ceil(plane, pieces), self.cols, max(most, room) * each

    def plane(self):
        """Return how many rows a block may have, at one distance from each other."""
        if self.pitch and len(self.outer) > 1:
            return self.outer[-1]
        return math.prod(self.outer)

    def finish_partials(self, rows, cols):
        """Make the arrays of partial results."""
        planes = math.prod(self.outer) // self.plane()
        count = planes * _ceil(self.plane(), rows) * _ceil(self.cols, cols)
        for partial in self.partials:
            partial[0] = self.planner.new_slot((partial[4], (count,), (0,)))


def _copied(code, source, target):
    """Return the step that copies a block."""
    return Lowered("copy", code, code, [source, target])


def _start_of(step):
    """Return the identity of a reduction, as an element."""
    return rules.scalar_bytes(identity(step.name, step.code, 1), step.code)


def _forwarded(planner, steps):
    """Let values that are only copied be computed in the place of the copy."""
    steps = list(steps)
    for copy in list(steps):
        if copy.name != "copy" or type(copy.sources[0]) is not Part:
            continue
        value = copy.sources[0].buffer
        if not planner.is_register(value) or planner.is_register(copy.target.buffer):
            continue
        touching = [i for i, step in enumerate(steps)
                    if step.target.buffer is value
                    or any(x.buffer is value for x in parts_of(step))]  # fmt: skip
        at = next(i for i, step in enumerate(steps) if step is copy)
        if len(touching) != 2 or touching[1] != at:
            continue
        first = touching[0]
        between = steps[first + 1 : at]
        target = copy.target.buffer
        if any(target in (step.target.buffer, *(p.buffer for p in parts_of(step)))
               for step in between):  # fmt: skip
            continue
        steps[first] = steps[first]._replace(target=copy.target)
        del steps[at]
    return steps


def _allocate(lowered):
    """Give registers numbers; return how many there are, and the bytes of an element.

    `lowered` is changed in place. A result may take the register of an operand that is
    not needed any more, if its elements are as large.
    """
    last = {}
    for i, step in enumerate(lowered):
        for operand in step.operands:
            if operand[0] in ("register", "gathered"):
                last[id(operand[1])] = i
    number, free, count, each = {}, [], 0, 1
    for i, step in enumerate(lowered):
        *inputs, output = step.operands
        dying, placed = [], []
        for operand in inputs:
            if operand[0] in ("register", "gathered"):
                key = id(operand[1])
                placed.append(("numbered", number[key], operand[2]))
                if last[key] == i and key not in (k for k, _ in dying):
                    dying.append((key, operand[2]))
            else:
                placed.append(operand)
        if output[0] in ("register", "gathered"):
            key, size = id(output[1]), rules.itemsize(output[2])
            each = max(each, size)
            if key not in number:
                same = [k for k, c in dying if rules.itemsize(c) == size and k != key]
                if same:
                    number[key] = number[same[0]]
                    dying = [(k, c) for k, c in dying if k != same[0]]
                elif free:
                    number[key] = free.pop()
                else:
                    number[key] = count
                    count += 1
            placed.append(("numbered", number[key], output[2]))
        else:
            placed.append(output)
        free += [number[k] for k, _ in dying if k != _key(output)]
        if _key(output) is not None and last[_key(output)] == i:
            free.append(number[_key(output)])
        lowered[i] = step._replace(operands=placed)
    return count, each


def _key(operand):
    return id(operand[1]) if operand[0] in ("register", "gathered") else None


def _operand(operand):
    """Return (place, index, item size)."""
    kind, index = operand[:2]
    if kind == "numbered":
        return (REGISTER, index, rules.itemsize(operand[2]))
    if kind == "leaf":
        return (LEAF, index, rules.itemsize(operand[2]))
    if kind == "partial":
        return (PARTIAL, index, rules.itemsize(operand[2]))
    return (CONSTANT, index, 0)
