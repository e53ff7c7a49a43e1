"""What `import ndx` costs beside `import numpy`: processes of both, in turn.

``python benchmarks/imports.py [--repeats 25]`` prints the medians of the time on the
clock and of the processor, and the number of modules that are loaded.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

PROGRAMS = {"numpy": "import numpy", "ndx": "import numpy, ndx"}
# A second thread of OpenBLAS would turn in a loop for 0.1 s after NumPy's import, and
# be counted where that ends later.
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
COUNT = "; import sys; print(len(sys.modules))"


def cost(program):
    """Return the seconds that a process takes, on the clock and of the processor."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=ENVIRONMENT)
    clock, after = (
        time.perf_counter() - begin,
        resource.getrusage(resource.RUSAGE_CHILDREN),
    )
    user, system = (
        getattr(after, n) - getattr(before, n) for n in ("ru_utime", "ru_stime")
    )
    return clock, user + system


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=25)
    repeats = parser.parse_args().repeats
    for program in PROGRAMS.values():  # which writes the bytecode
        subprocess.run([sys.executable, "-c", program], check=True)
    found = [
        {name: cost(text) for name, text in PROGRAMS.items()} for _ in range(repeats)
    ]
    for k, what in enumerate(("clock", "processor")):
        numpy = statistics.median(each["numpy"][k] for each in found)
        more = statistics.median(each["ndx"][k] - each["numpy"][k] for each in found)
        print(f"{what:10} numpy {1e3 * numpy:6.1f} ms, ndx {1e3 * more:+6.1f} ms")
    for name, text in PROGRAMS.items():
        print(f"modules, {name}:", end=" ", flush=True)
        subprocess.run([sys.executable, "-c", text + COUNT], check=True)


if __name__ == "__main__":
    main()
