"""Simulated policies of the pools of PyTorch, CuPy and MXNet, without memory.

Each policy has the rules that decide how much is held from the system: rounding, the
size of segments, search, splitting, merging. `tests/backends/pool/test_policies.py`
checks them against the sequences of the peers' own tests.
"""

import bisect
import itertools

MIB = 2**20


class Segment:
    """A range from the system, and its blocks in order of address."""

    def __init__(self, address, nbytes, small=False):
        self.address, self.nbytes, self.small = address, nbytes, small


class Block:
    """A part of a segment."""

    __slots__ = ("address", "free", "nbytes", "next", "prev", "segment", "stream")

    def __init__(self, segment, address, nbytes, stream):
        self.segment, self.address, self.nbytes = segment, address, nbytes
        self.stream, self.free = stream, False
        self.prev = self.next = None


class Policy:
    """Best fit with splitting and merging; the parts that differ are methods."""

    def __init__(self):
        self.reserved = self.peak = 0
        self.free_lists = {}
        self.addresses = itertools.count(2**40, 2**40)

    def allocate(self, nbytes, stream=0):
        """Return a handle to give to `free`."""
        size = self.round(nbytes)
        found = self.free_lists.setdefault(self.key(size, stream), [])
        at = bisect.bisect_left(found, (size, 0), key=lambda item: item[:2])
        if at < len(found) and self.fits(found[at][0], size):
            block = found.pop(at)[2]
        else:
            nbytes = self.segment_size(size)
            self.reserved += nbytes
            self.peak = max(self.peak, self.reserved)
            start = next(self.addresses)
            small = self.is_small(size)
            block = Block(Segment(start, nbytes, small), start, nbytes, stream)
        block.free = False
        if self.splits(block, size):
            rest = Block(
                block.segment, block.address + size, block.nbytes - size, block.stream
            )
            block.nbytes = size
            rest.prev, rest.next = block, block.next
            if block.next:
                block.next.prev = rest
            block.next = rest
            self.insert(rest)
        return block

    def free(self, block):
        """Take a block back, and merge it."""
        if self.merges:
            for other in (block.prev, block.next):
                if other is not None and other.free:
                    self.remove(other)
                    first, second = sorted((other, block), key=lambda b: b.address)
                    first.nbytes += second.nbytes
                    first.next = second.next
                    if second.next:
                        second.next.prev = first
                    block = first
        self.insert(block)

    def list_of(self, block):
        size = MIB if block.segment.small else 2 * MIB
        return self.free_lists.setdefault(self.key(size, block.stream), [])

    def insert(self, block):
        block.free = True
        item = (block.nbytes, block.address, block)
        bisect.insort(self.list_of(block), item, key=lambda item: item[:2])

    def remove(self, block):
        found = self.list_of(block)
        at = bisect.bisect_left(
            found, (block.nbytes, block.address), key=lambda item: item[:2]
        )
        del found[at]

    merges = True

    def is_small(self, size):
        return False

    def key(self, size, stream):
        return self.is_small(size), stream

    def fits(self, found, size):
        return True


class CuPy(Policy):
    """512-byte units, segments of the exact size, every remainder is split off."""

    def round(self, nbytes):
        return -(-nbytes // 512) * 512

    def segment_size(self, size):
        return size

    def splits(self, block, size):
        return block.nbytes > size


class PyTorch(CuPy):
    """2 MiB segments to 1 MiB, 20 MiB to 10 MiB; large remainders from 1 MiB on."""

    def is_small(self, size):
        return size <= MIB

    def segment_size(self, size):
        if size <= MIB:
            return 2 * MIB
        return 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB

    def splits(self, block, size):
        return block.nbytes - size >= (512 if block.segment.small else MIB + 1)


class Naive(Policy):
    """MXNet's default: pages, 2 MiB steps above 2 MiB, reuse of the exact size only."""

    merges = False

    def round(self, nbytes):
        step = 4096 if nbytes <= 2 * MIB else 2 * MIB
        return -(-nbytes // step) * step

    def segment_size(self, size):
        return size

    def fits(self, found, size):
        return found == size

    def splits(self, block, size):
        return False

    def key(self, size, stream):
        # One pool for all streams.
        return False, 0


class Round(Naive):
    """MXNet's other one: powers of two to 16 MiB, then multiples of that."""

    def round(self, nbytes):
        if nbytes > 2**24:
            return -(-nbytes // 2**24) * 2**24
        return max(4096, 1 << (nbytes - 1).bit_length())


POLICIES = {"PyTorch": PyTorch, "CuPy": CuPy, "MXNet naive": Naive,
            "MXNet round": Round}  # fmt: skip
