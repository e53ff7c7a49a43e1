"""Time every function, operator and method of ndx against NumPy, in one run.

    python benchmarks/sweep.py [--only TEXT] [--sizes 1,100] [--json FILE] [--plot FILE]

A point is a line of code (`sweep_cases`) at a size, a dtype and a layout. Batches of
NumPy's and of ndx's calls alternate, and of PyTorch's and numexpr's, where these are
installed and have the operation (with as many threads). The ratio of a point is the
median of the ratios of neighbouring batches, ndx / NumPy. Points above the limit are
measured again, longer, before they count. The table has the worst points first.

``--check`` exits with 1 if a point is above the limit, or a mean above its target.
"""

import argparse
import importlib
import json
import math
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sweep_cases import ALL_SIZES, Operands, cases, laid_out_like
from timing import compile_loop, names_in, side_by_side
from tqdm import tqdm

import ndx
import ndx.numpy

LIMIT = 1.05
# The geometric mean of the ratios over all points, and by size.
TARGETS = {None: 0.5, 1: 0.4, 100: 0.4, 1_000_000: 0.6, 10_000_000: 0.6}


class Point(NamedTuple):
    """A measured point: times in nanoseconds per call, by library."""

    group: str
    code: str
    size: int
    dtype: str
    layout: str
    ns: dict
    ratio: float

    @property
    def key(self):
        """What tells the point from all others."""
        return self.group, self.code, self.size, self.dtype, self.layout


def points(only, sizes, dtypes):
    """Yield the cases with each size, dtype and layout to measure."""
    for case in cases():
        if only and only not in case.code and only != case.group:
            continue
        for size in case.sizes:
            if size not in sizes:
                continue
            for dtype in case.dtypes:
                if dtypes and dtype not in dtypes:
                    continue
                # Of the other dtypes and layouts, the largest size adds little.
                largest = size == ALL_SIZES[-1]
                yield case, size, dtype, "contiguous"
                if dtype == case.dtypes[0] and size > 1 and not largest:
                    for layout in case.layouts:
                        yield case, size, dtype, layout


def loops_of(case, size, dtype, layout, peers):
    """Return the loops of the libraries that have the case, NumPy's and ndx's first."""
    operands = Operands(size, dtype, layout)
    made, plain = operands.arrays(), operands.plain()
    used = names_in(case.code)
    arrays = {name: made[name]() for name in sorted(used & made.keys())}
    others = {name: plain[name]() for name in sorted(used & plain.keys())}
    theirs = {**others, **arrays, "xp": np, "np": np}
    ours = {**others, "xp": ndx, "np": ndx.numpy}
    ours |= {name: laid_out_like(value) for name, value in arrays.items()}
    loops = {
        "numpy": compile_loop(case.code, theirs),
        "ndx": compile_loop(case.code, ours),
    }
    torch, numexpr = peers.get("torch"), peers.get("numexpr")
    if torch is not None and case.torch:
        # Tensors have no negative strides.
        tensors = {
            name: torch.from_numpy(value if min(value.strides) >= 0 else value.copy())
            for name, value in arrays.items()
        }
        loops["torch"] = compile_loop(case.torch, {**tensors, "t": torch})
    if numexpr is not None and case.numexpr:
        code = f"evaluate({case.numexpr!r}, operands)"
        loops["numexpr"] = compile_loop(
            code, {"evaluate": numexpr.evaluate, "operands": arrays}
        )
    return loops


def measure(job, peers, repeats, batch_ns):
    """Return the measured `Point` of a case at a size, dtype and layout."""
    case, size, dtype, layout = job
    loops = loops_of(case, size, dtype, layout, peers)
    times = side_by_side(list(loops.values()), repeats, batch_ns)
    ns = dict(zip(loops, times.ns, strict=True))
    return Point(case.group, case.code, size, dtype, layout, ns, times.ratios[1])


def find_peers():
    """Return the other libraries that are installed, set to all of the cores here."""
    found = {}
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    for name in ("torch", "numexpr"):
        try:
            found[name] = importlib.import_module(name)
        except ImportError:
            continue
        set_threads = found[name].set_num_threads
        set_threads(threads or os.cpu_count() or 1)
    return found


def geometric_mean(ratios):
    """Return the geometric mean; NaN of nothing."""
    ratios = list(ratios)
    if not ratios:
        return math.nan
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summary(found):
    """Return lines of text: means by size and by group, and against the peers."""
    sizes = sorted({point.size for point in found})
    groups = list(dict.fromkeys(point.group for point in found))
    lines = [f"{'':14}" + "".join(f"{size:>12,}" for size in sizes) + f"{'all':>8}"]
    for group in [*groups, None]:
        chosen = [x for x in found if group in (None, x.group)]
        means = [
            geometric_mean(x.ratio for x in chosen if size in (None, x.size))
            for size in [*sizes, None]
        ]
        cells = ["" if math.isnan(mean) else f"{mean:.2f}" for mean in means]
        lines.append(
            f"{group or 'all':14}"
            + "".join(f"{cell:>12}" for cell in cells[:-1])
            + f"{cells[-1]:>8}"
        )
    above = sum(point.ratio > LIMIT for point in found)
    lines.append(f"{len(found)} points, {above} above {LIMIT}")
    return lines


def rows(found, count):
    """Return lines of text: the worst points, and what the peers take there."""
    lines = [
        (
            f"{'code':44} {'size':>10} {'dtype':10} {'layout':10} {'NumPy us':>10} "
            f"{'ndx us':>10} {'ratio':>6}"
        )
    ]
    for point in sorted(found, key=lambda point: -point.ratio)[:count]:
        lines.append(
            f"{point.code[:44]:44} {point.size:10,} {point.dtype:10} {point.layout:10} "
            f"{point.ns['numpy'] / 1e3:10.2f} {point.ns['ndx'] / 1e3:10.2f} "
            f"{point.ratio:6.2f}"
        )
    return lines


def against_peers(found):
    """Return lines of text: ndx against PyTorch and numexpr."""
    lines = []
    for point in found:
        for peer in ("torch", "numexpr"):
            if peer in point.ns and point.size >= 10_000:
                ratio = point.ns["ndx"] / point.ns[peer]
                lines.append(
                    (
                        ratio,
                        (
                            f"{point.code[:30]:30} {point.size:10,} {point.dtype:10} "
                            f"{point.layout:10} {ratio:6.2f} of {peer}"
                        ),
                    )
                )
    return [line for _, line in sorted(lines, reverse=True)]


def plot(found, path):
    """Draw the ratios of all points: a column of dots for each group and size."""
    figure_of = importlib.import_module("matplotlib.figure")
    groups = list(dict.fromkeys(point.group for point in found))
    sizes = sorted({point.size for point in found})
    figure = figure_of.Figure(figsize=(12, 5), layout="constrained")
    axes = figure.add_subplot()
    rng = np.random.default_rng(0)
    for k, size in enumerate(sizes):
        places, ratios, means = [], [], []
        for g, group in enumerate(groups):
            own = [x.ratio for x in found if x.group == group and x.size == size]
            centre = g + (k - (len(sizes) - 1) / 2) * 0.15
            places.extend(centre + rng.uniform(-0.05, 0.05, len(own)))
            ratios.extend(own)
            if own:
                means.append((centre, geometric_mean(own)))
        dots = axes.scatter(places, ratios, s=6, alpha=0.5, label=f"{size:,}")
        axes.scatter(
            *zip(*means, strict=True),
            s=80,
            marker="_",
            color=dots.get_facecolor()[0][:3],
        )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel("time of ndx / time of NumPy")
    axes.legend(title="elements", ncols=len(sizes), loc="upper right")
    figure.savefig(path, dpi=120)


def as_json(found):
    """Return the points, and where they were measured, as JSON."""
    about = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ndx": getattr(ndx, "__version__", None),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }
    return json.dumps(
        {"about": about, "points": [p._asdict() for p in found]}, indent=1
    )


def targets_missed(found):
    """Return lines of text, one for each target that is missed."""
    missed = [
        f"{' '.join(map(str, point.key))}: {point.ratio:.2f} > {LIMIT}"
        for point in found
        if point.ratio > LIMIT
    ]
    for size, target in TARGETS.items():
        mean = geometric_mean(x.ratio for x in found if size in (None, x.size))
        if mean > target:
            what = "all sizes" if size is None else f"size {size:,}"
            missed.append(f"geometric mean of {what}: {mean:.2f} > {target}")
    return missed


def main(argv=None):
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="a group, or a part of the code")
    parser.add_argument("--sizes", help="numbers of elements, by commas")
    parser.add_argument("--dtypes", help="names, by commas")
    parser.add_argument("--worst", type=int, default=60, help="rows to print")
    parser.add_argument("--json", type=Path, help="write all points to this file")
    parser.add_argument("--plot", type=Path, help="draw the ratios to this file")
    parser.add_argument("--quick", action="store_true", help="fewer, shorter batches")
    parser.add_argument(
        "--check", action="store_true", help="fail if a target is missed"
    )
    args = parser.parse_args(argv)
    sizes = [int(x) for x in args.sizes.split(",")] if args.sizes else ALL_SIZES
    peers = find_peers()
    jobs = list(points(args.only, sizes, args.dtypes and args.dtypes.split(",")))
    repeats, batch_ns = (5, 300_000) if args.quick else (7, 1_000_000)
    found = []
    for job in tqdm(jobs, unit="point", disable=None):
        with np.errstate(all="ignore"):
            point = measure(job, peers, repeats, batch_ns)
            if point.ratio > LIMIT and not args.quick:
                point = measure(job, peers, 3 * repeats, 2 * batch_ns)
        found.append(point)
    print("\n".join(rows(found, args.worst)))
    print("\n".join(["", *against_peers(found)][:40]))
    print("\n".join(["", *summary(found)]))
    if args.json:
        args.json.write_text(as_json(found))
    if args.plot:
        plot(found, args.plot)
    missed = targets_missed(found) if args.check else []
    print("\n".join(missed), file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
