"""Traces as figures of matplotlib, which is imported on first use."""

from ndx._lib.sizes import format_size
from ndx.memory._timeline import (
    curve_of,
    maker_of,
    makers_at_peak,
    peak_of,
    reserved_curves,
    step_curve,
)

__all__ = ["plot_trace"]

# The number of makers with a band of their own.
_BANDS = 8


def plot_trace(data, ax):
    """Draw a trace into matplotlib's axes; see `Trace.plot`."""
    if ax is None:
        ax = _new_axes()
    arrays = data["arrays"]
    shown = [line for _, _, line in makers_at_peak(data)[:_BANDS]]
    groups = {line: [] for line in [*shown, None]}
    for array in range(len(arrays["born"])):
        line = maker_of(data, array)
        groups[line if line in groups else None].append(array)
    times = sorted({0, data["end"], *arrays["born"], *filter(None, arrays["died"])})
    bands = [_values_at(times, *curve_of(arrays, group)) for group in groups.values()]
    labels = [_short(line) for line in shown] + ["other lines"]
    if not groups[None]:
        del bands[-1], labels[-1]
    seconds = [time / 1e9 for time in times]
    if bands:
        ax.stackplot(seconds, bands, labels=labels, step="post", linewidth=0)
    for name, when, reserved in reserved_curves(data):
        xs, ys = step_curve(when, reserved, data["end"])
        label = f"reserved by {name!r}"
        ax.plot([x / 1e9 for x in xs], ys, "--", color="0.4", linewidth=1, label=label)
    time, peak = peak_of(data)
    ax.set_title(f"peak {format_size(peak)} at {time / 1e9:.3g} s", fontsize="medium")
    ax.set_xlabel("seconds")
    ax.set_xlim(0, max(data["end"] / 1e9, 1e-9))
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter(lambda value, _: format_size(int(value)))
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize="small")
    return ax


def _new_axes():
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "trace.plot needs matplotlib: pip install 'ndxarray[plot]'; "
            "or trace.save(path)"
        ) from error
    _, ax = plt.subplots(figsize=(10, 4.5), layout="constrained")
    return ax


def _values_at(times, changes, sums):
    """Return the values of a curve at the times, which include its own times."""
    values, position, now = [], 0, 0
    for time in times:
        while position < len(changes) and changes[position] <= time:
            now = sums[position]
            position += 1
        values.append(now)
    return values


def _short(line):
    """Return a line's name without its folders."""
    place, _, function = line.partition(" in ")
    name = place.replace("\\", "/").rpartition("/")[2]
    text = f"{name} in {function}" if function else name
    # matplotlib reads "$" as a formula, and omits labels that start with "_".
    return text.replace("$", r"\$").replace("_", "\u200b_", text.startswith("_"))
