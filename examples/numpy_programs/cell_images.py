"""Count cells in a synthetic micrograph: an image pipeline in plain NumPy.

The steps are those of a real one: noise, smoothing by convolution, equalisation of the
histogram, a threshold by Otsu's method, morphology, labels by union-find, measurements,
and files. Every step prints figures of what it made.
"""

import tempfile
from pathlib import Path

import numpy as np

SEED = 77
SHAPE = (120, 160)
CELLS = 22


def checksum(image):
    """Return a short number that depends on the places and values of all pixels."""
    flat = np.asarray(image, dtype=np.float64).ravel()
    return float(np.dot(flat, np.cos(np.arange(flat.size) * 0.1)))


def report(step, image):
    """Print the extremes, the mean and the checksum of an image."""
    low, high = np.percentile(image, [2, 98])
    print(
        f"{step:<12} {image.dtype!s:<8} min {image.min():9.4f} max {image.max():9.4f} "
        f"mean {image.mean():9.4f} p2 {low:8.3f} p98 {high:8.3f} "
        f"sum {checksum(image):.6e}"
    )


# ---- making and filtering ----------------------------------------------------


def synthetic(rng):
    """Return an image of uint8: bright discs over an uneven, noisy background."""
    rows, columns = np.indices(SHAPE)
    image = 30 + 25 * columns / SHAPE[1] + 10 * np.sin(rows / 15)
    centres = np.column_stack([rng.uniform(8, n - 8, CELLS) for n in SHAPE])
    radii = rng.uniform(3, 7, CELLS)
    for (row, column), radius in zip(centres, radii, strict=True):
        distance = np.hypot(rows - row, columns - column)
        image += 90 * np.exp(-((distance / radius) ** 4))
    image += rng.normal(0, 6, SHAPE)
    image[rng.random(SHAPE) < 0.01] = 255
    return np.clip(image, 0, 255).astype(np.uint8)


def gaussian(sigma):
    """Return a normalised kernel."""
    reach = int(3 * sigma + 0.5)
    line = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel = np.outer(line, line)
    return kernel / kernel.sum()


def windows(image, size):
    """Return the neighbourhood of each pixel, borders reflected."""
    padded = np.pad(image, size // 2, mode="reflect")
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size))


def convolve(image, kernel):
    """Return the convolution of an image."""
    return np.einsum(
        "ijkl,kl->ij", windows(image.astype(float), len(kernel)), kernel[::-1, ::-1]
    )


def median(image, size=3):
    """Return the median of each neighbourhood."""
    near = windows(image, size)
    return np.median(near.reshape(*image.shape, -1), axis=-1)


def box_mean(image, size):
    """Return the mean over squares, by an integral image."""
    padded = np.pad(image, size // 2, mode="edge")
    integral = np.zeros(np.add(padded.shape, 1))
    integral[1:, 1:] = padded.cumsum(axis=0).cumsum(axis=1)
    total = integral[size:, size:] - integral[:-size, size:]
    total -= integral[size:, :-size]
    total += integral[:-size, :-size]
    return total / size**2


def equalise(image):
    """Return the image with an even histogram, of uint8."""
    levels = np.clip(np.round(image), 0, 255).astype(np.uint8)
    counts = np.bincount(levels.ravel(), minlength=256)
    share = np.cumsum(counts) / levels.size
    table = (255 * share).astype(np.uint8)
    return table[levels]


def otsu(image):
    """Return the threshold that separates two classes best."""
    counts, edges = np.histogram(image, bins=128)
    middle = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_below = np.cumsum(counts * middle) / below
        mean_above = (np.sum(counts * middle) - np.cumsum(counts * middle)) / above
        between = below * above * (mean_below - mean_above) ** 2
    return middle[np.nanargmax(between)]


# ---- morphology and labels ---------------------------------------------------


def erode(mask, turns=1):
    """Return the pixels whose four neighbours are set, too."""
    for _ in range(turns):
        p = np.pad(mask, 1)
        mask = p[1:-1, 1:-1] & p[:-2, 1:-1] & p[2:, 1:-1] & p[1:-1, :-2] & p[1:-1, 2:]
    return mask


def dilate(mask, turns=1):
    """Return the pixels that are set, or have a neighbour that is."""
    return ~erode(np.pad(~mask, turns, constant_values=True), turns)[
        turns:-turns, turns:-turns
    ]


def label(mask):
    """Return labels of connected regions: 0 outside, then 1, 2, ... by first pixel."""
    numbers = np.zeros(mask.shape, dtype=np.int64)
    numbers[mask] = np.arange(1, np.count_nonzero(mask) + 1)
    parent = np.arange(numbers.max() + 1)

    def find(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return int(i)

    for a, b in ((numbers[1:], numbers[:-1]), (numbers[:, 1:], numbers[:, :-1])):
        both = (a > 0) & (b > 0)
        for i, j in zip(a[both].tolist(), b[both].tolist(), strict=True):
            low, high = sorted((find(i), find(j)))
            parent[high] = low
    roots = np.array([find(i) for i in range(len(parent))])
    kept, labels = np.unique(roots[numbers], return_inverse=True)
    assert kept[0] == 0
    return labels.reshape(mask.shape)


def measure(labels, image, smallest=12):
    """Return a table of regions: label, area, centre, mean, boundary; large first."""
    areas = np.bincount(labels.ravel())
    rows, columns = np.indices(labels.shape)
    flat = labels.ravel()
    centre = [
        np.bincount(flat, weights=axis.ravel()) / areas for axis in (rows, columns)
    ]
    mean = np.bincount(flat, weights=image.ravel()) / areas
    edge = np.bincount(flat[~erode(labels > 0).ravel()], minlength=areas.size)
    table = np.column_stack([np.arange(areas.size), areas, *centre, mean, edge])[1:]
    table = table[table[:, 1] >= smallest]
    return table[np.lexsort((table[:, 0], -table[:, 1]))]


# ---- files -------------------------------------------------------------------


def through_files(mask, table, image):
    """Write and read the results; return whether all of them came back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        np.save(path / "image.npy", image)
        np.savez_compressed(path / "all.npz", mask=np.packbits(mask), table=table)
        np.savetxt(path / "table.csv", table, fmt="%.6f", delimiter=",")
        mask.astype(np.uint8).tofile(path / "mask.raw")
        with np.load(path / "all.npz") as archive:
            bits = np.unpackbits(archive["mask"], count=mask.size)
            same = np.array_equal(archive["table"], table)
        same &= np.array_equal(bits.reshape(mask.shape).astype(bool), mask)
        same &= np.array_equal(np.load(path / "image.npy"), image)
        raw = np.fromfile(path / "mask.raw", dtype=np.uint8).reshape(mask.shape)
        same &= np.array_equal(raw.view(bool), mask)
        text = np.loadtxt(path / "table.csv", delimiter=",")
        return bool(same and np.allclose(text, table, atol=1e-6))


def main():
    """Run the pipeline and print its figures."""
    rng = np.random.default_rng(SEED)
    image = synthetic(rng)
    report("raw", image)
    clean = median(image)
    report("median", clean)
    smooth = convolve(clean, gaussian(1.2))
    report("gaussian", smooth)
    flat = smooth - box_mean(smooth, 41)
    report("flattened", flat)
    even = equalise(smooth)
    report("equalised", even)
    up, across = np.gradient(smooth)
    report("edges", np.hypot(up, across))

    threshold = otsu(flat)
    mask = dilate(erode(flat > threshold))
    print(f"threshold {threshold:.6f}, {np.count_nonzero(mask)} pixels of {mask.size}")
    labels = label(mask)
    table = measure(labels, image)
    print(f"{labels.max()} regions, {len(table)} cells")
    for number, area, row, column, mean, edge in table[:8]:
        print(
            f"  {int(number):3d} area {area:5.0f} at ({row:7.3f}, {column:7.3f}) "
            f"mean {mean:8.4f} edge {edge:4.0f}"
        )
    sizes = np.sort(table[:, 1])[::-1]
    print("areas", np.array2string(sizes, max_line_width=70, precision=1))
    print("quartiles", np.quantile(sizes, [0.25, 0.5, 0.75]))
    quadrant = 2 * (table[:, 2] > SHAPE[0] / 2) + (table[:, 3] > SHAPE[1] / 2)
    print("by quadrant", np.bincount(quadrant.astype(int), minlength=4).tolist())
    flipped = np.flipud(np.rot90(mask, 2))
    overlap = np.logical_and(mask, flipped).sum() / np.logical_or(mask, flipped).sum()
    print(f"overlap with the mirror image {overlap:.8f}")
    print("files agree:", through_files(mask, table, image))


if __name__ == "__main__":
    main()
