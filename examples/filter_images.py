"""Remove the noise from a folder of photos, in six ways.

The photos are parts of scikit-learn's two, with noise, as PNG files in a temporary
folder. The filter (``image_filter.py``) is written once, for one image. The images are
read and filtered

1. in a loop,
2. in a loop, each inside a workspace,
3. in such a workspace, with the elementwise parts of the filter fused (`ndx.fuse`),
4. likewise, with images that a thread reads ahead (`ndx.prefetch`),
5. likewise, by several workers, each in its workspace (`ndx.parallel.map`), and
6. by such workers, which read the images, too,

and a table shows the costs of each: time, allocations, page faults. All results must be
equal, and nearer to the photos without noise. A picture shows some before and after.

Run ``python examples/filter_images.py --help`` for the options.
"""

import functools
import itertools
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import comparison
import numpy as np
import photo_data
from comparison import at_least
from image_filter import FUSED, filtered
from PIL import Image
from rich import box
from rich.console import Console
from rich.table import Table

import ndx

AHEAD = 4
PICTURED = 2
REQUIRED_GAIN = 1.0  # of the signal-to-noise ratio, in dB

# ---- The variants ----------------------------------------------------------------


class Variant(NamedTuple):
    """A way through the folder: ``results()`` returns an iterable of results."""

    label: str
    results: Callable
    meter: comparison.Meter


def prefetched(folder, workers):
    """Return the images of a folder, read ahead by a thread."""
    # Images in the hands of workers are leased, and take slots.
    return ndx.prefetch(folder, depth=AHEAD, slots=AHEAD + 3 + 2 * workers)


def variants(folder, images, workers, backend):
    """Return the variants; each but the last adds something to the one before.

    `images` are those of the folder, read ahead. A function in a workspace detaches its
    results: they outlive the turn.
    """
    in_workspace = ndx.workspace("filter", learn="liveness")(filtered)
    fast = functools.partial(filtered, parts=FUSED)
    fast_in_workspace = ndx.workspace("fast filter", learn="liveness")(fast)
    by_workers = functools.partial(
        ndx.parallel.map,
        workers=workers,
        buffersize=2 * workers,
        config=ndx.WorkspaceConfig(learn="liveness"),
    )
    name = f"{workers} worker{'s' if workers > 1 else ''}"
    ways = {
        "loop": lambda: map(filtered, folder),
        "+ workspace": lambda: map(in_workspace, folder),
        "+ fused": lambda: map(fast_in_workspace, folder),
        "+ prefetch": lambda: map(fast_in_workspace, images),
        f"+ {name}": lambda: by_workers(fast, images),
        f"{name}, reading": lambda: by_workers(
            lambda path: fast(photo_data.load(path)), folder.paths
        ),
    }
    counters = comparison.Variant("", ndx, backend).counters
    return [
        Variant(label, results, comparison.Meter(counters))
        for label, results in ways.items()
    ]


def digests(results, on_result):
    """Return a number for each result, and keep nothing else of it."""
    found = []
    for result in results:
        found.append(zlib.crc32(result["edges"], zlib.crc32(result["image"])))
        on_result()
    return found


def compare(variants, repeats, on_result):
    """Run all variants in turn; return the labels of those whose results differ.

    One repeat more comes first: caches fill, and workspaces learn their sizes.
    """
    expected, different = None, []
    for _ in range(repeats + 1):
        for variant in variants:
            with variant.meter:
                found = digests(variant.results(), lambda v=variant: on_result(v))
            expected = expected or found
            if found != expected and variant.label not in different:
                different.append(variant.label)
    return different


# ---- Showing ---------------------------------------------------------------------


def print_table(variants, count, title):
    """Print one line per variant."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    for text in (
        "ms /\nimage",
        "x\nloop",
        "buffers\n/ image",
        "system\n/ image",
        "faults\n/ image",
    ):
        table.add_column(text, justify="right", no_wrap=True)
    loop = variants[0].meter.seconds[1:]
    for label, _, meter in variants:
        seconds, counts = meter.seconds[1:], meter.counts[1:]
        ratios = [a / b for a, b in zip(seconds, loop, strict=True)]
        made, system = (median(column) for column in zip(*counts, strict=True))
        table.add_row(
            label,
            f"{1000 * median(seconds) / count:.2f}",
            f"{median(ratios):.2f}",
            f"{made / count:.1f}",
            f"{system / count:.2f}",
            f"{median(meter.faults[1:]) / count:.0f}",
        )
    console = Console(width=80)
    console.print(table)
    console.print(
        "Times are medians of interleaved repeats after the first, reading included.\n"
        "buffers: array data allocated by the backend; each image has two results.\n"
        "system: requests of its pool to the system. "
        "faults: minor page faults of the process.",
        highlight=False,
        soft_wrap=True,
    )


def check(folder, clean, output):
    """Filter all images once more; return the mean ratios before and after.

    The results are written to the folder `output`, unless it is None.
    """
    before, after = [], []
    results = ndx.parallel.map(filtered, folder)
    for path, image, result in zip(folder.paths, clean, results, strict=True):
        found = np.asarray(result["image"])
        before.append(photo_data.signal_to_noise(photo_data.read(path), image))
        after.append(photo_data.signal_to_noise(found, image))
        if output is not None:
            Image.fromarray(found).save(output / path.name)
    return fmean(before), fmean(after)


def pictured(folder):
    """Yield some images, their results, and their edges, dark on white."""
    for pixels in itertools.islice(folder, PICTURED):
        result = filtered(pixels)
        yield tuple(map(np.asarray, (pixels, result["image"], 255 - result["edges"])))


# ---- The command line ------------------------------------------------------------


def parse_args(argv):
    """Return the options, or exit with code 2 and one line on stderr."""
    parser = comparison.OneLineParser(
        description="Remove the noise from a folder of photos with ndx: in a loop, in "
        "workspaces, with images read ahead, and by workers; compare.",
        picture="filter_images.png",
    )
    add = parser.add_argument
    add("--images", type=at_least(1), default=40, metavar="N")
    add("--size", type=int, default=400, metavar="N", help="width and height, pixels")
    add("--workers", type=at_least(1), default=2, metavar="N")
    add("--repeats", type=at_least(1), default=5, metavar="N")
    add("--seed", type=at_least(0), default=0, metavar="N")
    add("--output", type=Path, metavar="FOLDER", help="keep the filtered images there")
    args = parser.parse_args(argv)
    low, high = photo_data.SMALLEST, photo_data.LARGEST
    if not low <= args.size <= high:
        parser.error(f"argument --size: {args.size} is not from {low} to {high}")
    if args.output is not None and not args.output.is_dir():
        parser.error(f"argument --output: there is no folder {str(args.output)!r}")
    return args


def run(args, folder, clean):
    """Compare the variants on a folder; return what failed, or an empty text."""
    with prefetched(folder, args.workers) as images:
        ways = variants(folder, images, args.workers, args.backend)
        total = len(folder) * len(ways) * (args.repeats + 1)
        with comparison.progress(
            total, "img", lambda variant: variant.label, disable=args.no_progress
        ) as on_result:
            different = compare(ways, args.repeats, on_result)
    title = f"Filtering {len(folder)} photos of {args.size} x {args.size} pixels"
    print_table(ways, len(folder), title)
    before, after = check(folder, clean, args.output)
    print(f"Signal to noise: {before:.1f} dB before, {after:.1f} dB after.")
    if different:
        return f"other results than the loop: {', '.join(different)}"
    print("All variants have the same results, to the last bit.")
    return "" if after - before >= REQUIRED_GAIN else "the filter removes no noise"


def main(argv=None):
    """Run the variants and report; return the exit code."""
    args = parse_args(argv)
    with tempfile.TemporaryDirectory() as path, ndx.use(args.backend):
        clean = photo_data.make_folder(path, args.images, args.size, args.seed)
        folder = photo_data.Folder(path)
        failed = run(args, folder, clean)
        titles = "before", "after", "edges"
        try:
            photo_data.save_grid(pictured(folder), titles, args.picture)
        except OSError as error:
            failed = f"{args.picture}: cannot be written: {error.strerror}"
        else:
            print(f"Picture of some images: {args.picture}")
    if failed:
        print(failed, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
