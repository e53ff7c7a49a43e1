"""Simulate a square that cools down, five times.

The simulation (``heat_solver.py``) is written once, against an array namespace. The
same code then runs

1. on NumPy,
2. on ndx,
3. on ndx with each step in time inside a workspace,
4. on ndx with each step inside a workspace that plans by the arrays' lifetimes, and
5. on ndx in such a workspace, with the operations of a step fused (`ndx.fuse`),

and a table shows the costs of each: time, allocations, page faults, bytes. A picture of
array memory over the first steps is saved beside it. The results are checked against
the exact solution, also on finer meshes.

Run ``python examples/heat_equation.py --help`` for the options.
"""

import functools
import itertools
import math
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in train_digits.py

import comparison
from comparison import at_least
from heat_solver import RATE, Simulation, advance

import ndx

# The stencil's error is proportional to the square of the mesh width. Its maximum over
# time is 1.21 times that square, for these waves.
REQUIRED_ERROR = 1.3
REQUIRED_ORDER = 1.9
MESHES = (17, 33, 65)
END = 0.03


def parse_args(argv):
    """Return the options, or exit with code 2 and one line on stderr."""
    parser = comparison.OneLineParser(
        description="Simulate the heat equation with NumPy, ndx, and ndx in "
        "workspaces; compare time and memory.",
        picture="heat_memory.png",
    )
    add = parser.add_argument
    add(
        "--points",
        type=at_least(5),
        default=129,
        metavar="N",
        help="points of the mesh in each direction",
    )
    add("--steps", type=at_least(1), default=20, metavar="N", help="of each repeat")
    add("--repeats", type=at_least(1), default=40, metavar="N")
    return parser.parse_args(argv)


def error_on(points, end):
    """Return the error on a mesh of `points` squared at the time `end`."""
    workspace = ndx.workspace()
    steps = round(end * (points - 1) ** 2 / RATE)
    run = Simulation(ndx, lambda: workspace, points=points, steps=steps)
    run.repeat()
    return run.error()


def converge(meshes, end):
    """Return the errors on each mesh at a time, and the orders between them.

    Each mesh has half of the mesh width of the one before: the error should fall to a
    quarter, which is an order of 2.
    """
    errors = [error_on(points, end) for points in meshes]
    return errors, [math.log2(a / b) for a, b in itertools.pairwise(errors)]


def main(argv=None):
    """Run the variants and report; return the exit code."""
    args = parse_args(argv)
    make_run = functools.partial(Simulation, points=args.points, steps=args.steps)
    variants = comparison.variants(
        args.backend, workspace={}, liveness={"learn": "liveness"}
    )
    fused = variants[-1]._replace(
        label="ndx, fused", workspace="fused", options={"step": ndx.fuse(advance)}
    )
    variants.append(fused)
    with comparison.progress(
        args.repeats,
        "rep",
        lambda run: f"mean {run.history[-1]:.4f}",
        disable=args.no_progress,
    ) as on_repeat:
        rows = comparison.compare(make_run, variants, args.repeats, on_repeat)
    errors = {row.label: row.run.error() for row in rows}
    comparison.print_table(
        rows,
        title="Cooling of a square",
        heading="max.\nerror",
        results=[f"{error:.1e}" for error in errors.values()],
        note="Largest difference between the variants' mean temperatures:",
    )
    meshes, orders = converge(MESHES, END)
    print(
        f"Errors on meshes of {', '.join(map(str, MESHES))} points squared: "
        f"{', '.join(f'{error:.1e}' for error in meshes)}; "
        f"orders {', '.join(f'{order:.2f}' for order in orders)}."
    )
    limit = REQUIRED_ERROR / (args.points - 1) ** 2
    wrong = [name for name, error in errors.items() if not error <= limit]
    failed = f"error above {limit:.1e}: {', '.join(wrong)}" if wrong else ""
    if not min(orders) >= REQUIRED_ORDER:
        failed = failed or f"the order of convergence is below {REQUIRED_ORDER}"
    return comparison.report(
        rows, args, failed, step="time step", without="the temperatures themselves"
    )


if __name__ == "__main__":
    sys.exit(main())
