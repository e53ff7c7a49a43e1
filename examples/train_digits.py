"""Train a small neural network on handwritten digits, three times.

The network, its gradients and the optimizer (``digits_network.py``) are written
once, against an array namespace. The same code then runs

1. on NumPy,
2. on ndx, and
3. on ndx with each training step inside a workspace,

and a table shows what each cost: time, allocations, page faults, bytes. A
picture of array memory over the first steps is saved beside it.

Run ``python examples/train_digits.py --help`` for the options.
"""

import argparse
import contextlib
import functools
import os
import sys
from pathlib import Path

# Before NumPy is imported. Matrices this small gain nothing from BLAS threads, and
# lose a hundredfold where those spin against another program on few cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import digits_report as report
import numpy as np
from digits_network import Digits, train
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import ndx

REQUIRED_ACCURACY = 0.95


def load_data(seed):
    """Return scikit-learn's 1,797 digits, split into 80 % and 20 % by `seed`."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.2, random_state=seed, stratify=labels
    )
    train_targets = np.eye(10, dtype=np.float32)[train_labels]
    return Digits(train_images, train_targets, test_images, test_labels)


# ---- The three variants ------------------------------------------------------


def run_numpy(digits, settings, progress):
    """Train on NumPy; count and sample in runs of their own."""
    meter = report.Meter()
    with progress("NumPy") as bar:
        trained = train(np, digits, **settings, meter=meter, on_epoch=bar)
    one_epoch = settings | {"epochs": 1}
    counting = report.Meter(report.CountedArray.counters)
    train(report.CountingNumPy(), digits, **one_epoch, meter=counting)
    meter.counts = counting.counts
    with report.numpy_gauge() as gauge:
        samples = sample(np, digits, one_epoch, gauge)
    return report.Row("NumPy", trained, meter, samples, None)


def run_ndx(digits, settings, progress, backend, workspace=None):
    """Train on ndx, each step in `workspace` if one is named."""
    label, scope, fresh_scope = "ndx", contextlib.nullcontext, contextlib.nullcontext
    if workspace is not None:
        label = "ndx + workspace"
        scope = functools.partial(ndx.workspace, workspace)
        # Another name, since the samples are to show how a workspace starts.
        fresh_scope = functools.partial(ndx.workspace, f"{workspace}, sampled")
    meter = report.Meter(report.ndx_counters(backend))
    arena = None
    with ndx.use(backend):
        with progress(label) as bar:
            trained = train(
                ndx, digits, **settings, scope=scope, meter=meter, on_epoch=bar
            )
        if workspace is not None:
            with scope() as entered:
                arena = entered.stats()["size"]
        one_epoch = settings | {"epochs": 1, "scope": fresh_scope}
        samples = sample(ndx, digits, one_epoch, report.ndx_gauge(backend))
    return report.Row(label, trained, meter, samples, arena)


def sample(xp, digits, settings, gauge):
    """Train once more, slowly: what `gauge` shows is kept at each line."""
    with report.sampled(gauge, train.__code__.co_filename) as samples:
        train(xp, digits, **settings, meter=samples, on_step=samples.end_step)
    return samples


# ---- The command line --------------------------------------------------------


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message):
        """Print `message` to stderr and exit with code 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")


def at_least(minimum):
    """Return an argparse type: an integer of `minimum` or more."""

    def parse(text):
        try:
            value = int(text)
        except ValueError:
            value = minimum - 1
        if value < minimum:
            msg = f"{text!r} is not an integer of {minimum} or more"
            raise argparse.ArgumentTypeError(msg)
        return value

    return parse


def picture_path(text):
    """Return `text` as a path that a PNG file can be written to."""
    path = Path(text)
    if path.suffix.lower() != ".png":
        msg = f"{text!r} does not end in '.png'"
        raise argparse.ArgumentTypeError(msg)
    if not path.parent.is_dir():
        msg = f"{text!r}: there is no folder {str(path.parent)!r}"
        raise argparse.ArgumentTypeError(msg)
    return path


def parse_args(argv):
    """Return the options, or exit with code 2 and one line on stderr."""
    parser = OneLineParser(
        description="Train on handwritten digits with NumPy, ndx, and ndx in a "
        "workspace; compare time and memory.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--backend", default="host", metavar="NAME", help="where ndx arrays live")
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
    add("--picture", type=picture_path, default="digits_memory.png", metavar="PATH")
    add("--no-progress", action="store_true", help="show no progress bars")
    args = parser.parse_args(argv)
    if args.seed >= 2**32:
        parser.error(f"argument --seed: {args.seed} is not below 2**32")
    try:
        with ndx.use(args.backend):
            ndx.zeros((1,))
    except (ValueError, RuntimeError, ImportError, OSError, MemoryError) as error:
        parser.error(f"argument --backend: {' '.join(str(error).split())}")
    return args


def progress_bars(epochs, disable):
    """Return a function that opens a bar of `epochs` for a label."""

    @contextlib.contextmanager
    def progress(label):
        with tqdm(total=epochs, desc=f"{label:<18}", unit="ep", disable=disable) as bar:

            def advance(loss):
                bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
                bar.update()

            yield advance

    return progress


def main(argv=None):
    """Run the three variants and report; return the exit code."""
    args = parse_args(argv)
    digits = load_data(args.seed)
    settings = {
        "epochs": args.epochs,
        "batch_size": args.batch_size,
        "hidden": tuple(args.hidden),
        "seed": args.seed,
    }
    progress = progress_bars(args.epochs, args.no_progress)
    rows = [
        run_numpy(digits, settings, progress),
        run_ndx(digits, settings, progress, args.backend),
        run_ndx(digits, settings, progress, args.backend, workspace="step"),
    ]
    report.print_table(rows)
    try:
        report.save_picture(rows, args.picture)
    except OSError as error:
        print(f"{args.picture}: cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    print(f"Picture of the first steps: {args.picture}")
    poor = [row.label for row in rows if row.trained.accuracy < REQUIRED_ACCURACY]
    if poor:
        print(
            f"test accuracy below {REQUIRED_ACCURACY}: {', '.join(poor)}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
