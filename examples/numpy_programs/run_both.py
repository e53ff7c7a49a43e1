"""Run the programs of this folder with NumPy and with `ndx.numpy`, and compare.

The programs were written for NumPy. For the second run one line of their text is
replaced, ``import numpy as np`` by ``import ndx.numpy as np``. Each run is a process of
its own. A table shows, for each program, whether the outputs are equal, how much memory
of ndx its arrays took, and how many arrays of NumPy its functions had: none.

Run ``python examples/numpy_programs/run_both.py --help`` for the options.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# As in train_digits.py.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import ndx

FOLDER = Path(__file__).parent
IMPORT = "import numpy as np\n"
REPLACEMENTS = {"numpy": IMPORT, "ndx": "import ndx.numpy as np\n"}


class Run(NamedTuple):
    """What a program printed, and what ndx counted meanwhile."""

    output: str
    peak_bytes: int
    allocations: int
    ndx_arrays: int
    numpy_arrays: int


# ---- In the process of a program ---------------------------------------------


class Census:
    """Counts the arrays in the variables and results of a program's functions.

    Parameters
    ----------
    path : str
        The file of the functions.
    """

    def __init__(self, path):
        self.path = path
        self.seen = {}

    def __call__(self, frame, event, result):
        """Look at a function that returns: a hook of `sys.setprofile`."""
        if event == "return" and frame.f_code.co_filename == self.path:
            self.look(result)
            self.look(list(frame.f_locals.values()))

    def look(self, value):
        """Note the arrays in a value, also in sequences and mappings."""
        if isinstance(value, np.ndarray | ndx.NDArray):
            self.seen[id(value)] = value
        elif isinstance(value, dict):
            self.look(list(value.values()))
        elif isinstance(value, list | tuple):
            for item in value:
                self.look(item)

    def count(self, kind):
        """Return the number of arrays of a class."""
        return sum(isinstance(array, kind) for array in self.seen.values())


def run_here(path, library):
    """Run a program in this process; return a `Run`.

    Parameters
    ----------
    path : path-like
    library : {'numpy', 'ndx'}

    Raises
    ------
    ValueError
        If the program does not have the line that is replaced, exactly once.
    """
    text = Path(path).read_text(encoding="utf-8")
    if text.count(IMPORT) != 1:
        msg = f"{path}: the line {IMPORT.strip()!r} is there {text.count(IMPORT)} times"
        raise ValueError(msg)
    code = compile(text.replace(IMPORT, REPLACEMENTS[library]), str(path), "exec")
    census = Census(str(path))
    before = ndx.memory.stats("host")
    ndx.memory.reset_peak("host")
    with contextlib.redirect_stdout(io.StringIO()) as output:
        sys.setprofile(census)
        try:
            exec(code, {"__name__": "__main__", "__file__": str(path)})
        finally:
            sys.setprofile(None)
    after = ndx.memory.stats("host")
    return Run(
        output.getvalue(),
        after["peak_bytes"] - before["allocated_bytes"],
        after["total_allocations"] - before["total_allocations"],
        census.count(ndx.NDArray),
        census.count(np.ndarray),
    )


# ---- In the process that compares --------------------------------------------


def run(path, library):
    """Run a program in a process of its own; return a `Run`.

    Raises
    ------
    RuntimeError
        If the program failed; with what it wrote to stderr.
    """
    command = [sys.executable, __file__, "--run", library, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{Path(path).name} with {library} failed:\n{done.stderr}"
        raise RuntimeError(msg)
    return Run(**json.loads(done.stdout))


def programs():
    """Return the paths of the programs."""
    return sorted(path for path in FOLDER.glob("*.py") if path != Path(__file__))


def count_lines(path):
    """Return the number of lines of a file that are not blank."""
    return sum(bool(line.strip()) for line in path.read_text("utf-8").splitlines())


def compare(paths):
    """Run programs both ways; return the table, and what is wrong, in words."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("program", "lines", "output", "peak KiB", "arrays", "NumPy's"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    wrong = []
    for path in paths:
        expected, found = run(path, "numpy"), run(path, "ndx")
        equal = expected.output == found.output
        if not equal:
            wrong.append(
                f"{path.name}: the outputs differ{difference(expected, found)}"
            )
        if found.numpy_arrays:
            wrong.append(f"{path.name}: {found.numpy_arrays} arrays are NumPy's")
        table.add_row(
            path.stem,
            str(count_lines(path)),
            "equal" if equal else "differs",
            f"{found.peak_bytes / 1024:,.0f}",
            f"{found.ndx_arrays:,}",
            f"{found.numpy_arrays:,}",
        )
    return table, wrong


def difference(expected, found):
    """Return the first pair of lines that differ, as text."""
    lines = expected.output.splitlines(), found.output.splitlines()
    for a, b in zip(*lines, strict=False):
        if a != b:
            return f":\n  NumPy {a}\n  ndx   {b}"
    return f": {len(lines[0])} and {len(lines[1])} lines"


def main(argv=None):
    """Compare, and print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("programs", nargs="*", type=Path, help="default: all here")
    parser.add_argument(
        "--run",
        choices=REPLACEMENTS,
        help="run one program in this process with this library; print JSON",
    )
    args = parser.parse_args(argv)
    if args.run:
        for path in args.programs:
            print(json.dumps(run_here(path, args.run)._asdict()))
        return 0
    table, wrong = compare(args.programs or programs())
    Console().print(table)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
