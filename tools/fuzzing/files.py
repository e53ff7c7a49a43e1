"""Steps with files: saved, loaded, opened in each mode, committed."""

import os

import numpy as np

from fuzzing.machine import Block, Failure, Skip

FILES = 3


class File:
    """A file of the program: its content, and the arrays that may change it."""

    def __init__(self, base):
        self.base = base
        self.opened = []  # (mode, block)

    def modes(self):
        """Return the modes in which the file is open now."""
        self.opened = [entry for entry in self.opened if not entry[1].closed]
        return {mode for mode, _ in self.opened}


class Files:
    """The part of the machine that has files."""

    def start_files(self):
        self.files = [None] * FILES

    def path(self, index):
        return os.path.join(self.folder, f"{index}.npy")

    def do_save(self, dest, first, second, draw):
        name = self.find(first, stale=draw(12) == 0)
        index = second % FILES
        self.change(f"ndx.save({self.path(index)!r}, {name})", [name], model=name)
        self.files[index] = File(np.array(self.ms[name], order="C"))

    def do_load(self, dest, first, second, draw):
        index = second % FILES
        file = self.files[index]
        if file is None or "c" in file.modes():
            raise Skip
        code, generation = f"ndx.load({self.path(index)!r})", self.current()
        self.say(f"v{dest} = {code}")
        x, _ = self.run(code, [], model="None")
        self.keep(f"v{dest}", code, x, np.array(file.base), generation)

    def do_open(self, dest, first, second, draw):
        index = second % FILES
        file = self.files[index]
        mode = draw.among(["r", "r+", "r+", "c", "w+"])
        if mode == "w+":
            shape, dtype = self.shape(draw), draw.among(["float64", "int32", "bool"])
            code = f"ndx.open({self.path(index)!r}, 'w+', {shape}, {dtype!r})"
            file = self.files[index] = File(np.zeros(shape, dtype))
        else:
            if file is None:
                raise Skip
            # Writes to a file may or may not reach private mappings of it.
            if mode == "c" and file.modes() - {"r"}:
                raise Skip
            if mode == "r+" and "c" in file.modes():
                raise Skip
            code = f"ndx.open({self.path(index)!r}, {mode!r})"
        self.say(f"v{dest} = {code}")
        x, _ = self.run(code, [], model="None")
        m = np.array(file.base) if mode == "c" else file.base[...]
        if mode == "r":
            m.flags.writeable = False
        if x.shape != m.shape or x.dtype != m.dtype or x.workspace is not None:
            raise Failure(f"{code}: {x.dtype}{x.shape} in {x.workspace}")
        block = Block(file=file)
        block.index = index
        block.mode = mode
        file.opened.append((mode, block))
        self.bind(f"v{dest}", x, m, block)

    def find_mapped(self, first, modes):
        """Return the name of an array in a file that is open in one of the modes."""
        for i in range(20):
            name = f"v{(first + i) % 20}"
            block = self.blocks.get(name)
            if block is not None and not block.stale and block.mode in modes:
                return name
        raise Skip

    def do_flush(self, dest, first, second, draw):
        name = self.find_mapped(first, ("r+", "w+"))
        self.say(f"{name}.flush()")
        self.xs[name].flush()
        block = self.blocks[name]
        file = self.files[block.index]
        if file is block.file:
            found = np.load(self.path(block.index))
            if found.tobytes() != file.base.tobytes():
                raise Failure(f"{name}.flush(): the file has {found}, not {file.base}")

    def do_commit(self, dest, first, second, draw):
        name = self.find_mapped(first, ("c",))
        block = self.blocks[name]
        self.say(f"{name}.commit()")
        self.xs[name].commit()
        # By NumPy, because the program's workspace may refuse memory.
        found = np.load(self.path(block.index))
        m = self.ms[name]
        whole = m if m.base is None else m.base
        if found.shape != whole.shape or found.tobytes() != whole.tobytes():
            raise Failure(f"{name}.commit(): the file has {found}, not {whole}")
        file = self.files[block.index] = File(found)
        file.opened.append(("c", block))
        block.file = file
