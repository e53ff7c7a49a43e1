"""Chains: steps of arithmetic on floats that are computed in the CPU's registers.

Consecutive steps of a stage become one, which reads its inputs and writes one result.
Its other values are never written: `internal/chain.h` has the loops. Values that are
needed elsewhere end a chain.
"""

from typing import NamedTuple

import ndx._fusing.rules as rules
from ndx._fusing.replay import chain_codes, limits

LIMITS = limits()
CODES = chain_codes()  # by name; empty if the compiler has no vectors
_FLOATS = {rules.code_of("float32"), rules.code_of("float64")}
_BOOL = rules.code_of("bool")
_KEPT = ("register", "gathered")
# The name of the step whose accumulator is the second operand instead of the first.
_TURNED = {
    "add": "add", "subtract": "from", "multiply": "multiply", "divide": "over",
    "less": "greater", "less_equal": "greater_equal", "greater": "less",
    "greater_equal": "less_equal", "equal": "equal", "not_equal": "not_equal",
}  # fmt: skip
_BOTH = ("add", "subtract", "multiply", "divide")
_TESTS = frozenset(_TURNED).difference(_BOTH)
_CHAINED = {*_TURNED, "square", "negative", "abs", "sqrt", "select"} & set(CODES)
_MERGED = {
    "add": "multiply_add", "subtract": "multiply_subtract", "from": "multiply_from",
}  # fmt: skip


class Lowered(NamedTuple):
    """One call of a loop for each block: a step, or a chain of steps."""

    name: str
    code: int
    into: int
    operands: list
    reduces: bool = False
    chain: tuple = ()


class _TooLong(Exception):
    """A chain exceeds a limit of `internal/chain.h`."""


def chained(lowered, strided):
    """Return the steps with chains in place of consecutive ones.

    Parameters
    ----------
    lowered : list of Lowered
    strided : set of int
        Leaves of which no chain may be made: their elements lie apart.
    """
    found, run = [], []
    for i, step in enumerate(lowered):
        chainable = _is_chainable(step, strided)
        if run and not (chainable and step.code == run[0].code):
            found += _split(run, lowered[i:])
            run = []
        (run if chainable else found).append(step)
    return [*found, *_split(run, [])]


def may_chain(step):
    """Whether a step may be in a chain, if its operands may."""
    return step.name in _CHAINED and step.code in _FLOATS and not step.reduces


def _is_chainable(step, strided):
    """Whether a step with its operands may be in a chain."""
    if any(x[0] == "leaf" and x[1] in strided for x in step.operands):
        return False
    *inputs, output = step.operands
    if not may_chain(step):
        return False
    if step.name == "select":
        inputs = inputs[1:]
    into = _BOOL if step.name in _TESTS else step.code
    return step.into == into and all(
        operand[0] == "constant" or operand[2] == code
        for operand, code in [*((x, step.code) for x in inputs), (output, into)]
    )


def _split(steps, later):
    """Return steps as chains, as long as can be; `later` are the steps after them."""
    if len(steps) < 2:
        return steps
    at = _end(steps, later)
    if at is None:
        try:
            return [_Chain(steps).lowered()]
        except _TooLong:
            at = len(steps) // 2
    return [*_split(steps[:at], [*steps[at:], *later]), *_split(steps[at:], later)]


def _end(steps, later):
    """Return how many steps may be one chain, if not all of them."""
    outside = {key for step in later for key in map(_key, step.operands[:-1])}
    masks = set()
    for i, step in enumerate(steps):
        *inputs, output = step.operands
        # Masks are no bools: they pass from a test to `select` within a chain.
        alone = (step.name == "select" and _key(inputs[0]) not in masks) or (
            step.name in _TESTS
            and (_key(output) in outside or output[0] not in _KEPT
                 or _reads_bools(steps[i + 1 :], _key(output)))
        )  # fmt: skip
        if alone:
            return i or 1
        masks.discard(_key(output))
        if step.name in _TESTS:
            masks.add(_key(output))
        ends = output[0] not in _KEPT or _key(output) in outside
        if ends and i + 1 < len(steps):
            return i + 1
    return None


def _reads_bools(steps, key):
    """Whether steps read the result of a test other than as the mask of `select`."""
    return any(
        key in map(_key, step.operands[step.name == "select" : -1]) for step in steps
    )


def _key(operand):
    """Return what is equal for the same operand."""
    kind, index = operand[:2]
    return kind, id(index) if kind in _KEPT else index


class _Chain:
    """The making of one chain: its tiles, and the orders that use them."""

    def __init__(self, steps):
        self.steps = []
        self.inputs = {}  # operands by key
        self.orders = []  # (name, tiles): a value's tile is its step's number
        # The operands of each step: inputs by their keys, values by their steps.
        made, known, self.sources = {}, {}, []
        for step in steps:
            found = []
            for operand in step.operands[:-1]:
                key = _key(operand)
                if key not in made:
                    self.inputs.setdefault(key, operand)
                found.append(made.get(key, key))
            value = (step.name, *found)
            # What was computed before is not computed again, but for the result.
            if value not in known or step is steps[-1]:
                known[value] = len(self.steps)
                self.steps.append(step)
                self.sources.append(found)
            made[_key(step.operands[-1])] = known[value]
        self.last_use = {x: i for i, found in enumerate(self.sources) for x in found}

    def lowered(self):
        """Return the chain as one step."""
        for i, step in enumerate(self.steps):
            self.add(i, step.name, list(self.sources[i]))
        self.orders.append(("end", ("result",)))
        first, last = self.steps[0], self.steps[-1]
        tiles = self.tiles()
        if len(self.inputs) >= LIMITS["operands"] or len(self.orders) > LIMITS["chain"]:
            raise _TooLong
        orders = []
        for name, used in self.orders:
            one, other = (*used, "result", "result")[:2]
            orders.append((CODES[name], tiles[one], tiles[other]))
        names = " ".join(step.name for step in self.steps)
        operands = [*self.inputs.values(), last.operands[-1]]
        chain = (max(tiles.values()) + 1, orders)
        return Lowered(names, first.code, first.code, operands, chain=chain)

    def add(self, i, name, sources):
        """Add the orders of a step; the value of the one before is accumulated."""
        before = i - 1
        place = sources.index(before) if before in sources else None
        squares = name == "multiply" and sources == [before, before]
        if squares:
            name, sources = "square", [before]
        if i and (
            place is None or self.last_use[before] > i or sources.count(before) > 1
        ):
            self.orders.append(("store", (before,)))
        if place is None:
            if name in _BOTH:
                self.orders.append((f"{name}_both", tuple(sources)))
                return
            place = 1 if name == "select" else 0
            self.orders.append(("load", (sources[place],)))
        others = tuple(x for k, x in enumerate(sources) if k != place)
        if name == "select":
            name = ("select", "select_this", "select_else")[place]
        elif place:
            name = _TURNED[name]
        ahead, tiles = self.orders[-1] if self.orders else (None, ())
        if ahead == "multiply" and name in _MERGED:
            self.orders[-1] = (_MERGED[name], (*tiles, *others))
        else:
            self.orders.append((name, others))

    def tiles(self):
        """Return the numbers of tiles: inputs, the result, values that are stored."""
        numbers = {key: i for i, key in enumerate(self.inputs)}
        numbers["result"] = len(numbers)
        free, count, taken = [], len(numbers), {}
        for at, (name, used) in enumerate(self.orders):
            if name == "store":
                if not free:
                    free.append(count)
                    count += 1
                numbers[used[0]] = taken[used[0]] = free.pop()
            for value in used:
                if value in taken and not any(
                    value in later for _, later in self.orders[at + 1 :]
                ):
                    free.append(taken.pop(value))
        if count > LIMITS["tiles"]:
            raise _TooLong
        return numbers
