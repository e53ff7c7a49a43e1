"""Steps in which arrays leave their scope, or foreign code uses their memory."""

import gc

import numpy as np

import ndx
from fuzzing.machine import EXPORTS, REFUSALS, Block, Failure, Skip


class Escapes:
    """The part of the machine that moves, exports and closes."""

    def do_drop(self, dest, first, second, draw):
        name = self.find(first, stale=True, shared=False)
        self.say(f"del {name}")
        self.drop(name)

    def do_cycle(self, dest, first, second, draw):
        """Drop an array in a cycle, which only the cyclic collector frees."""
        name = self.find(first, stale=True, shared=False)
        self.say(f"knot = [{name}]; knot.append(knot); del knot, {name}")
        knot = [self.xs[name]]
        knot.append(knot)
        self.drop(name)

    def do_collect(self, *_):
        self.say("gc.collect()")
        gc.collect()

    # ------------------------------------------------------- from scope to scope

    def generation_of(self, x):
        """Return the generation that an array reports."""
        name = x.workspace
        if name is None:
            return None
        for scope in self.scopes.values():
            if scope.name == name and scope.now is not None:
                return scope.now
        raise Failure(f"an array is in workspace {name}, which is not open")

    def do_leave(self, dest, first, second, draw):
        name = self.find(first, stale=draw(12) == 0)
        call = draw.among(["detach()", "leverage()", "migrate()", "leverage_to"])
        if call == "leverage_to":
            entered = [entry for entry in self.stack if entry[0] == "workspace"]
            if not entered:
                raise Skip
            call = f"leverage_to({entered[second % len(entered)][1]})"
        code, target = f"{name}.{call}", f"v{dest}"
        self.say(f"{target} = {code}")
        x, m = self.run(code, [name], model=name)
        if x is self.xs[name]:
            self.bind(target, x, m, self.blocks[name])
            return
        generation = None if call == "detach()" else self.generation_of(x)
        self.keep(target, code, x, np.array(m), generation)

    def do_copy(self, dest, first, second, draw):
        name = self.find(first, stale=draw(12) == 0)
        if draw(3) == 0:
            code = f"pickle.loads(pickle.dumps({name}))"
            generation = None
        else:
            code = draw.among([f"copy.copy({name})", f"copy.deepcopy({name})"])
            generation = self.current()
        self.say(f"v{dest} = {code}")
        x, m = self.run(code, [name])
        self.keep(f"v{dest}", code, x, np.array(m), generation)

    def do_close(self, dest, first, second, draw):
        name = self.find(first, stale=draw(6) == 0, shared=False)
        block = self.blocks[name]
        if block.vague:
            raise Skip
        stale, exported = block.stale, block.exported
        self.say(f"{name}.close()")
        try:
            self.xs[name].close()
        except ndx.StaleArrayError as error:
            if not stale:
                raise Failure(f"{name}.close(): {error}") from error
            return
        except BufferError as error:
            if not exported:
                raise Failure(f"{name}.close(): {error}") from error
            return
        if block.exports:
            raise Failure(f"{name}.close(): it is exported, and was closed")
        block.closed = True

    # ----------------------------------------------------------------- exports

    def do_export(self, dest, first, second, draw):
        name = self.find(first, stale=draw(12) == 0)
        target = f"e{second % EXPORTS}"
        code = draw.among(
            [f"np.asarray({name})", f"np.asarray({name})", f"memoryview({name})",
             f"np.from_dlpack({name})", f"np.asarray({name}, copy=False)"]
        )  # fmt: skip
        self.say(f"{target} = {code}")
        x, m = self.run(code, [name], model=f"np.asarray({name})[...]")
        a = np.asarray(x)
        if a.shape != m.shape or a.dtype != m.dtype:
            raise Failure(f"{code}: {a.dtype}{a.shape}, not {m.dtype}{m.shape}")
        self.bind(target, x, m, self.blocks[name])

    def do_drop_export(self, dest, first, second, draw):
        name = self.find_export(first)
        self.say(f"del {name}")
        self.drop(name)

    def do_write_export(self, dest, first, second, draw):
        """Foreign code writes to exported memory."""
        name = self.find_export(first)
        x, m = self.xs[name], self.ms[name]
        if type(x) is memoryview:
            x = np.asarray(x)
        if self.blocks[name].shared or not x.flags.writeable or not m.flags.writeable:
            raise Skip
        value = draw(5)
        self.say(f"np.asarray({name})[...] = {value}")
        x[...] = value
        m[...] = value

    def do_import(self, dest, first, second, draw):
        """An array over foreign memory, which belongs to another array."""
        name = self.find_export(first)
        if type(self.xs[name]) is memoryview:
            code = f"ndx.asarray({name}, copy=False)"
        else:
            code = draw.among(
                [f"ndx.asarray({name}, copy=False)", f"ndx.from_dlpack({name})"]
            )
        self.say(f"v{dest} = {code}")
        block = self.blocks[name]
        try:
            x = eval(self.compiled(code, "eval"), self.xs)
        except REFUSALS:
            if type(self.xs[name]) is memoryview or not self.xs[name].flags.writeable:
                raise Skip from None
            raise
        m = self.ms[name]
        if x.shape != m.shape or x.dtype != m.dtype:
            raise Failure(f"{code}: {x.dtype}{x.shape}, not {m.dtype}{m.shape}")
        m = m.view()
        m.flags.writeable = m.flags.writeable and np.asarray(x).flags.writeable
        made = Block(shared=block.shared, file=block.file)
        # The memory is exported while the array lives.
        made.exported = block.exported = True
        self.bind(f"v{dest}", x, m, made)

    def do_foreign(self, dest, first, second, draw):
        """An array over NumPy's memory, which NumPy continues to use."""
        shape = self.shape(draw)
        target, name = f"e{second % EXPORTS}", f"v{dest}"
        dtype = draw.among(["float64", "int64", "bool"])
        self.say(
            f"{target} = pattern(np.empty({shape}, dtype={dtype!r})); "
            f"{name} = ndx.asarray({target}, copy=False)"
        )
        a = self.xs["pattern"](np.empty(shape, dtype=dtype))
        x = ndx.asarray(a, copy=False)
        m = np.array(a)
        # NumPy's own reference keeps no memory of ndx.
        self.bind(name, x, m, Block())
        self.bind(target, a, m[...], Block())

    def do_mixed(self, dest, first, second, draw):
        """A NumPy array as an operand, which may share memory with the target."""
        target = self.find(first, lambda m: m.flags.writeable, shared=False)
        m = self.ms[target]
        name = self.find_export(
            second, lambda e: e.shape == m.shape and e.dtype == m.dtype
        )
        if type(self.xs[name]) is memoryview or m.dtype.kind == "b":
            raise Skip
        if self.blocks[name].file is not None and self.clashes(target, [name]):
            raise Skip
        if draw(2):
            self.change(f"{target} += {name}", [target])
            self.settle(target)
        else:
            code = draw.among([f"{target} + {name}", f"np.add({name}, {target})"])
            self.fresh(dest, code, [target], draw, settle=True)
