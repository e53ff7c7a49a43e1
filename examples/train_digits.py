"""Train a small neural network on handwritten digits, five times.

The network, its gradients and the optimizer (``digits_network.py``) are written
once, against an array namespace. The same code then runs

1. on NumPy,
2. on ndx,
3. on ndx with each training step inside a workspace,
4. on ndx with each step inside a workspace that plans by the arrays' lifetimes, and
5. on ndx in such a workspace, with the elementwise parts of a step fused (`ndx.fuse`),

and a table shows the costs of each: time, allocations, page faults, bytes. A
picture of array memory over the first steps is saved beside it.

``--mode`` adds a variant whose step names the roles of its arrays, in the workspaces of
a plan (``digits_roles.py``). With ``--prefetch`` a thread shuffles its batches ahead,
with ``--workers`` the parts of each batch are computed at the same time, each by a
worker (``digits_pipelines.py``); all of them can be combined. ``--evaluate`` reports on
the test images: classes, their confusion, ROC curves, also as a picture.

Run ``python examples/train_digits.py --help`` for the options.
"""

import functools
import os
import sys

# Before NumPy is imported. Matrices this small gain nothing from BLAS threads, and are
# a hundred times slower if these compete with another program for few cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import comparison
import digits_pipelines
from comparison import at_least
from digits_data import load_data
from digits_network import PLAIN, Parts, Training, sgd_step
from digits_roles import StepInRoles, evaluate

import ndx

REQUIRED_ACCURACY = 0.95


def parse_args(argv):
    """Return the options, or exit with code 2 and one line on stderr."""
    parser = comparison.OneLineParser(
        description="Train on handwritten digits with NumPy, ndx, and ndx in "
        "workspaces; compare time and memory.",
        picture="digits_memory.png",
    )
    add = parser.add_argument
    add("--epochs", type=at_least(1), default=60, metavar="N")
    add("--batch-size", type=at_least(1), default=128, metavar="N")
    add(
        "--hidden",
        type=at_least(1),
        default=[256],
        nargs="+",
        metavar="N",
        help="width of each hidden layer",
    )
    add("--seed", type=at_least(0), default=0, metavar="N")
    add(
        "--mode",
        choices=("enabled", "none"),
        help="also train with the workspaces of a plan, in this mode",
    )
    add("--prefetch", action="store_true", help="also train with batches made ahead")
    add(
        "--workers",
        type=at_least(1),
        metavar="N",
        help="also train with so many workers, a part of each batch for each",
    )
    add(
        "--evaluate",
        type=comparison.picture_path,
        nargs="?",
        const="digits_evaluation.png",
        metavar="PATH",
        help="report on the test images, and save a picture (by default as %(const)s)",
    )
    args = parser.parse_args(argv)
    if args.seed >= 2**32:
        parser.error(f"argument --seed: {args.seed} is not below 2**32")
    return args


def pipeline_variant(args, like):
    """Return the variant that --mode, --prefetch and --workers ask for, or None.

    Without a mode and workers its steps are in a workspace as those of `like`.
    """
    parts = [
        args.mode,
        args.prefetch and "prefetch",
        args.workers and f"{args.workers} worker{'s' if args.workers > 1 else ''}",
    ]
    if not any(parts):
        return None
    options = digits_pipelines.options(
        args.mode,
        args.prefetch,
        args.workers,
        functools.partial(StepInRoles, args.mode),
    )
    own = args.mode or args.workers
    return like._replace(
        label=",\n".join(filter(None, ["ndx", *parts])).replace("\n", " ", 1),
        workspace=None if own else "prefetch",
        options=options,
    )


def show_evaluation(run, args, digits):
    """Print the report of a trained network on the test images, and save a picture."""
    with ndx.use(args.backend):
        report = evaluate(run.params, digits, args.batch_size, not args.no_progress)
    print(f"\n{report}\n")
    report.plot(args.evaluate)
    print(f"Saved {args.evaluate}.")


def main(argv=None):
    """Run the variants and report; return the exit code."""
    args = parse_args(argv)
    make_run = functools.partial(
        Training,
        digits=load_data(args.seed),
        batch_size=args.batch_size,
        hidden=tuple(args.hidden),
        seed=args.seed,
    )
    variants = comparison.variants(
        args.backend, workspace={}, liveness={"learn": "liveness"}
    )
    parts = Parts(*map(ndx.fuse, PLAIN))
    fused = variants[-1]._replace(
        label="ndx, fused",
        workspace="fused",
        options={"step": functools.partial(sgd_step, parts=parts)},
    )
    variants.append(fused)
    chosen = pipeline_variant(args, like=variants[-1])
    if chosen:
        variants.append(chosen)
    with comparison.progress(
        args.epochs,
        "ep",
        lambda run: f"loss {run.history[-1]:.4f}",
        disable=args.no_progress,
    ) as on_repeat:
        rows = comparison.compare(make_run, variants, args.epochs, on_repeat)
    if args.mode and not args.workers:
        rows[-1] = rows[-1]._replace(arena=rows[-1].run.step.arena())
    accuracies = {row.label: row.run.accuracy() for row in rows}
    comparison.print_table(
        rows,
        title="Training on handwritten digits",
        heading="test\naccur.",
        results=[f"{value:.4f}" for value in accuracies.values()],
        note="Largest difference between the variants' losses:",
    )
    if args.evaluate:
        show_evaluation(rows[-1].run, args, make_run.keywords["digits"])
    poor = [name for name, value in accuracies.items() if value < REQUIRED_ACCURACY]
    return comparison.report(
        rows,
        args,
        f"test accuracy below {REQUIRED_ACCURACY}: {', '.join(poor)}" if poor else "",
        step="training step",
        without="the data set, the parameters and their momentum",
    )


if __name__ == "__main__":
    sys.exit(main())
