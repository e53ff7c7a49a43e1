"""The machine: names of arrays, their expected values, and their shared memory.

Each expression is one line of Python, evaluated twice: with ndx's arrays under the
names ``v0``, ``v1``, ... and with NumPy's. Views of the model share memory as the views
of ndx must, so that after any write all names can be compared.
"""

import numpy as np

import ndx
from fuzzing.model import MODEL, in_thread, pattern
from ndx.backends._pressure import live_backends

NAMES = 20  # of arrays that a program makes; then those that all threads share
SHARED = 4
EXPORTS = 6

# Errors of bad arguments; other errors are never expected.
REFUSALS = (ValueError, TypeError, IndexError, OverflowError, BufferError)


class Failure(AssertionError):
    """ndx did not behave as the model."""


class Skip(Exception):
    """A step that was refused as expected, or that has no operands."""


class Generation:
    """One cycle of a workspace, dead once its memory is reclaimed."""

    __slots__ = ("dead", "detaches", "name")

    def __init__(self, name, detaches):
        self.name = name
        self.detaches = detaches  # its arrays escape at its end
        self.dead = False


class Block:
    """Memory that arrays share, with one lifetime."""

    __slots__ = (
        "closed", "exported", "exports", "file", "generation", "index", "mode",
        "shared", "vague",
    )  # fmt: skip

    def __init__(self, generation=None, shared=False, file=None):
        self.generation = generation
        self.closed = False
        self.exports = 0  # exports under a program's names now
        self.exported = False  # ever
        self.shared = shared
        self.file = file  # the mapped file, with its number and mode
        self.vague = False  # other arrays may share it, or not
        self.index = None
        self.mode = None

    @property
    def stale(self):
        return self.closed or (self.generation is not None and self.generation.dead)


class Draw:
    """The choices of a step: small numbers out of a large one."""

    __slots__ = ("left",)

    def __init__(self, number):
        self.left = number

    def __call__(self, count):
        self.left, chosen = divmod(self.left, count)
        return chosen

    def among(self, choices):
        return choices[self(len(choices))]


class Machine:
    """Names, memory and comparisons; `operations` and `scopes` have the steps.

    Parameters
    ----------
    folder : str
        For files.
    shared : list of (array, ndarray)
        Arrays that all threads read and none writes.
    every : int
        Steps between comparisons of all names.
    lines : Script, optional
        Takes the program as a script.
    """

    codes: dict = {}  # noqa: RUF012

    def __init__(self, folder, shared=(), every=4, lines=None):
        self.folder = folder
        self.every = every
        self.lines = lines
        self.count = 0
        self.xs = {"ndx": ndx, "np": np, "pattern": pattern, "in_thread": in_thread}
        self.ms = {
            "ndx": MODEL,
            "np": np,
            "pattern": pattern,
            "in_thread": lambda function: function(),
        }
        self.blocks = {}
        self.is_alone = False
        self.others = set(ndx.memory.live().where(place="other"))
        for i, (x, m) in enumerate(shared):
            self.bind(f"v{NAMES + i}", x, m, Block(shared=True))

    # ------------------------------------------------------------------- names

    def bind(self, name, x, m, block):
        if name[0] == "e":
            self.drop(name)
            block.exports += 1
            block.exported = True
        self.xs[name] = x
        self.ms[name] = m
        self.blocks[name] = block

    def drop(self, name):
        block = self.blocks.pop(name, None)
        if block is None:
            return
        if name[0] == "e":
            block.exports -= 1
        del self.ms[name]
        del self.xs[name]

    def find(self, first, where=None, stale=False, shared=True):
        """Return the first name, from a number on, whose array fits."""
        total = NAMES + SHARED
        for i in range(total):
            number = (first + i) % total
            name = f"v{number}"
            block = self.blocks.get(name)
            if (
                block is not None
                and (stale or not block.stale)
                and (shared or not block.shared)
                and (where is None or where(self.ms[name]))
            ):
                return name
        raise Skip

    def find_export(self, first, where=None):
        for i in range(EXPORTS):
            name = f"e{(first + i) % EXPORTS}"
            if name in self.blocks and (where is None or where(self.ms[name])):
                return name
        raise Skip

    # ------------------------------------------------------------------ running

    def say(self, line):
        if self.lines is not None:
            self.lines.append(line)

    def run(self, code, names, mode="eval", model=None):
        """Evaluate a line on both sides; both raise, or neither does."""
        stale = any(self.blocks[name].stale for name in names)
        try:
            x = eval(self.compiled(code, mode), self.xs)
        except ndx.StaleArrayError as error:
            if stale:
                raise Skip from None
            raise Failure(f"{code}: {error}") from error
        except ndx.OutOfMemoryError as error:
            if self.is_tight():
                raise Skip from None
            raise Failure(f"{code}: {error}") from error
        except REFUSALS as error:
            try:
                eval(self.compiled(model or code, mode), self.ms)
            except REFUSALS:
                raise Skip from None
            raise Failure(f"{code}: {type(error).__name__}: {error}") from error
        if stale:
            raise Failure(f"{code}: no StaleArrayError")
        try:
            m = eval(self.compiled(model or code, mode), self.ms)
        except REFUSALS as error:
            raise Failure(f"{code}: not refused; NumPy: {error}") from error
        return x, m

    def compiled(self, code, mode):
        found = self.codes.get((code, mode))
        if found is None:
            if len(self.codes) > 50_000:
                self.codes.clear()
            found = self.codes[code, mode] = compile(code, "<step>", mode)
        return found

    def is_tight(self):
        """Whether a request may be refused here for want of memory."""
        return False

    def current(self):
        """Return the generation of new arrays; None: they are independent."""
        return None

    # ------------------------------------------------------------------ results

    def fresh(self, number, code, names, draw, settle=False, model=None):
        """Keep a new array, which shares memory with no other."""
        name = f"v{number}"
        generation = self.current()
        if draw(40) == 0:
            # A thread has scopes of its own.
            code, generation = f"in_thread(lambda: {code})", None
            model = model and f"in_thread(lambda: {model})"
        self.say(f"{name} = {code}")
        x, m = self.run(code, names, model=model)
        self.keep(name, code, x, np.array(m), generation)
        if name in self.xs and (settle or draw(16) == 0):
            self.settle(name, force=settle == "always")

    def keep(self, name, code, x, m, generation):
        """Bind a result whose values are near the model's, which then takes them."""
        if not isinstance(x, ndx.NDArray):
            raise Failure(f"{code}: a {type(x).__name__}")
        if x.shape != m.shape or x.dtype != m.dtype:
            raise Failure(f"{code}: {x.dtype}{x.shape}, not {m.dtype}{m.shape}")
        if type(x) is not ndx.NDArray:
            # A number, which can't be changed, and is in no workspace.
            a = np.asarray(x)
            if a.tobytes() != m.tobytes() and not near(a, m):
                raise Failure(f"{code}: {shown(a)}, not {shown(m)}")
            self.drop(name)
            return
        expected = None if generation is None else generation.name
        if x.workspace != expected:
            raise Failure(f"{code}: in workspace {x.workspace}, not {expected}")
        a = np.asarray(x)
        if a.tobytes() != m.tobytes():
            if not near(a, m):
                raise Failure(f"{code}: {shown(a)}, not {shown(m)}")
            m = np.array(a)
        del a
        self.bind(name, x, m, Block(generation))

    def view(self, number, code, source, model=None):
        """Keep a result that may share memory with a name: a view, or the array."""
        name = f"v{number}"
        generation = self.current()
        self.say(f"{name} = {code}")
        x, m = self.run(code, [source], model=model)
        self.keep_view(name, code, x, np.asarray(m), source, generation)

    def keep_view(self, name, code, x, m, source, generation):
        if not isinstance(x, ndx.NDArray):
            raise Failure(f"{code}: a {type(x).__name__}")
        if type(x) is not ndx.NDArray:
            self.keep(name, code, x, np.array(m), None)
            return
        block = self.blocks[source]
        if x is not self.xs[source]:
            if not m.size:
                # The memory of an array without elements can't be identified.
                if block.generation is not generation:
                    self.drop(name)
                    return
                block.vague = True
            elif not np.may_share_memory(np.asarray(x), np.asarray(self.xs[source])):
                # An element is in no workspace.
                self.keep(name, code, x, np.array(m), generation if m.ndim else None)
                return
        if x.shape != m.shape or x.dtype != m.dtype:
            raise Failure(f"{code}: {x.dtype}{x.shape}, not {m.dtype}{m.shape}")
        if m.size and not np.may_share_memory(m, self.ms[source]):
            # ndx sees a view where NumPy copies.
            self.drop(name)
            return
        self.bind(name, x, m, block)

    def change(self, code, names, model=None):
        """Run a statement that writes to the memory of the first name."""
        self.say(code)
        self.run(code, names, mode="exec", model=model)

    def settle(self, name, force=False):
        """Fill an array with small whole numbers, whose sums are exact."""
        m = self.ms[name]
        if m.dtype.kind not in "fc" or not m.size:
            return
        if force or not bool(np.max(np.abs(m)) <= 1024):
            self.change(f"{name}[...] = ndx.asarray(pattern({name}))", [name])

    # --------------------------------------------------------------- comparisons

    def step(self, number, step):
        """Run one step of a program."""
        op, dest, first, second, choices = step
        if self.lines is not None:
            self.lines.begin()
        try:
            getattr(self, "do_" + op)(dest % NAMES, first, second, Draw(choices))
        except Skip:
            if self.lines is not None:
                self.lines.refuse()
        if number % self.every == 0:
            self.compare()

    def compare(self):
        """Compare the array of every name with the model."""
        self.count += 1
        for name, block in self.blocks.items():
            x = self.xs[name]
            if name[0] == "v":
                if block.stale:
                    if (self.count + id(block)) % 8 == 0:
                        self.check_stale(name, x)
                    continue
                try:
                    x = np.asarray(x)
                except Exception as error:
                    raise Failure(f"{name}: {type(error).__name__}: {error}") from error
            elif type(x) is memoryview:
                x = np.asarray(x)
            m = self.ms[name]
            if x.tobytes() != m.tobytes():
                raise Failure(f"{name} is {shown(x)}, not {shown(m)}")
        if self.is_alone:
            self.compare_counts()

    def compare_counts(self):
        """Compare what is alive with what backends count."""
        # Others may read memory that was exported, as long as an array of it is there.
        exports = any(block.exported for block in self.blocks.values())
        for backend in live_backends():
            counted = backend.stats()["allocated_bytes"]
            if not counted or hasattr(backend, "upstream"):
                continue
            found = ndx.memory.live(backend)
            if found.nbytes != counted:
                raise Failure(f"{backend} counts {counted} bytes, {found.nbytes} live")
            unknown = set(found.where(place="other")) - self.others
            if unknown and not exports:
                raise Failure(f"{backend}: which array has {unknown}?")

    def check_stale(self, name, x):
        try:
            np.asarray(x)
        except ndx.StaleArrayError:
            return
        except Exception as error:
            raise Failure(f"{name}: {type(error).__name__}: {error}") from error
        raise Failure(f"{name} is not stale")

    def finish(self):
        """Compare, and drop everything."""
        self.compare()
        for name in list(self.blocks):
            self.drop(name)


def near(a, m):
    """Whether results are equal except for rounding."""
    if m.dtype.kind not in "fc":
        return False
    small = m.dtype in (np.float32, np.complex64)
    rtol, atol = (2e-3, 2e-2) if small else (1e-9, 1e-7)
    return np.allclose(a, m, rtol=rtol, atol=atol, equal_nan=True)


def shown(a):
    text = np.array2string(a, threshold=24).replace("\n", "")
    return f"{a.dtype}{a.shape} {text}"
