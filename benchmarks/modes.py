"""What the workspaces of a model's roles cost: time and memory of a step.

    python benchmarks/modes.py [--quick] [--json]

A network of six layers is trained, and used for inference, on batches of 128 rows of
64 columns (the last one of an epoch has 37): without workspaces (``none``), with those
of an `ndx.WorkspacePlan` (``enabled``), and with `ndx.Roles` that have an arena for the
sum of all arrays (``single``) or one for each role (``separate``). The code is the
same. Epochs of all modes alternate, so that disturbances affect all; each goes first in
turn.

- ``us / step``: the median time of a step, of epochs after the first two;
- ``x none``: the median of its ratios to the neighbouring epoch without workspaces;
- ``buffers / step``, ``system / step``: allocations of array data, and how many of
  them came from the system;
- ``arenas``: bytes of all arenas; ``peak``: the peak of array data on the backend in
  an epoch, arenas included, above what there is before.
"""

import argparse
import itertools
import json
import os
import time
from statistics import median

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import ndx

MODES = ("none", "enabled", "single", "separate")
WIDTHS = (64, 128, 128, 128, 128, 128, 10)
ROWS = (128,) * 11 + (37,)


class Network:
    """Layers with tanh, trained on the squared error; names roles, no workspace."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.weights = [
            ndx.asarray(rng.standard_normal(shape) / shape[0] ** 0.5, copy=True)
            for shape in itertools.pairwise(WIDTHS)
        ]

    def forward(self, roles, x):
        found = [x]
        for weight in self.weights:
            with roles.scope("forward"):
                z = ndx.tanh(found[-1] @ weight)
                found.append(roles.leverage_to("activations", z))
        return found

    def inference(self, roles, x, expected):
        # Without training, an activation is needed by the next layer alone.
        with roles.scope("activations"):
            for weight in self.weights:
                with roles.scope("forward"):
                    x = roles.leverage_to("activations", ndx.tanh(x @ weight))
            return int(ndx.argmax(x[0, :]))

    def training(self, roles, x, expected):
        with roles.scope("activations", "gradients"):
            with roles.scope("activations"):
                found = self.forward(roles, x)
            error = found[-1] - expected
            loss, delta = float(ndx.mean(error * error)), error / x.shape[0]
            for weight, inputs, outputs in zip(
                reversed(self.weights), found[-2::-1], found[:0:-1], strict=True
            ):
                with roles.scope("backward"):
                    delta = delta * (1 - outputs * outputs)
                    step = inputs.T @ delta
                    delta = roles.leverage_to("gradients", delta @ weight.T)
                    with roles.scope("updater"):
                        weight -= 0.01 * step
            return loss


def roles_of(phase, mode):
    """Return a function that returns the roles of a mode."""
    name = f"{phase} {mode}"
    if mode in ("none", "enabled"):
        return getattr(ndx.WorkspacePlan(mode, mode, name=name), phase)
    config = ndx.WorkspaceConfig(overallocation=0.05, spill="grow")
    roles = ndx.Roles(
        {
            role: (f"{name} {role}" if mode == "separate" else name, config)
            for role in ndx.Role
        }
    )
    return lambda: roles


class Run:
    """Epochs of one phase in one mode."""

    def __init__(self, phase, mode):
        self.mode, self.network = mode, Network()
        self.roles = roles_of(phase, mode)
        self.step = getattr(self.network, phase)
        rng = np.random.default_rng(1)
        self.batches = [
            (
                ndx.asarray(rng.standard_normal((rows, WIDTHS[0])), copy=True),
                ndx.asarray(rng.uniform(-1, 1, (rows, WIDTHS[-1])), copy=True),
            )
            for rows in ROWS
        ]
        self.seconds, self.counts, self.peaks = [], [], []

    def epoch(self):
        before = ndx.memory.stats("host")
        ndx.memory.reset_peak("host")
        start = time.perf_counter()
        for x, expected in self.batches:
            self.step(self.roles(), x, expected)
        self.seconds.append(time.perf_counter() - start)
        after = ndx.memory.stats("host")
        names = ("total_allocations", "system_allocations")
        self.counts.append([after[name] - before[name] for name in names])
        self.peaks.append(after["peak_bytes"] - before["allocated_bytes"])

    def arenas(self):
        """Return the bytes of all arenas, each counted once."""
        found = {ws.name: ws.size for ws in self.roles().values() if ws is not None}
        return sum(found.values())


def measure(phase, epochs):
    """Return a row for each mode."""
    runs = [Run(phase, mode) for mode in MODES]
    for turn in range(epochs + 2):
        for place in range(len(runs)):
            runs[(place + turn) % len(runs)].epoch()
    rows, steps = [], len(ROWS)
    for run in runs:
        pairs = zip(run.seconds[2:], runs[0].seconds[2:], strict=True)
        buffers, system = (median(x[2:]) for x in zip(*run.counts, strict=True))
        rows.append(
            {
                "phase": phase,
                "mode": run.mode,
                "us_per_step": 1e6 * median(run.seconds[2:]) / steps,
                "x_none": median(a / b for a, b in pairs),
                "buffers_per_step": buffers / steps,
                "system_per_step": system / steps,
                "arena_bytes": run.arenas(),
                "peak_bytes": run.arenas() + max(run.peaks[2:]),
            }
        )
    return rows


def show(rows):
    """Print a table."""
    print(
        f"{'phase':<12}{'mode':<10}{'us / step':>10}{'x none':>8}{'buffers':>9}"
        f"{'system':>8}{'arenas KiB':>12}{'peak KiB':>10}"
    )
    for row in rows:
        print(
            f"{row['phase']:<12}{row['mode']:<10}{row['us_per_step']:>10.0f}"
            f"{row['x_none']:>8.2f}{row['buffers_per_step']:>9.1f}"
            f"{row['system_per_step']:>8.1f}{row['arena_bytes'] / 1024:>12,.0f}"
            f"{row['peak_bytes'] / 1024:>10,.0f}"
        )


def main(argv=None):
    parser = argparse.ArgumentParser(
        description="Time and memory of a step, by the workspaces of its roles."
    )
    parser.add_argument("--quick", action="store_true", help="fewer epochs")
    parser.add_argument("--json", action="store_true", help="print JSON, no table")
    args = parser.parse_args(argv)
    epochs = 10 if args.quick else 60
    rows = [
        row for phase in ("training", "inference") for row in measure(phase, epochs)
    ]
    if args.json:
        print(json.dumps({"numpy": np.__version__, "rows": rows}, indent=2))
    else:
        show(rows)


if __name__ == "__main__":
    main()
