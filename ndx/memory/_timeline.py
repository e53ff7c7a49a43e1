"""Sums over the columns of a trace: live bytes over time, and their makers."""

from bisect import bisect_right

from ndx._lib.sizes import format_size

__all__ = ["curve_of", "maker_of", "peak_of", "step_curve", "summary_text"]


def curve_of(arrays, chosen=None):
    """Return the times at which the bytes of live arrays changed, and the new sums.

    Parameters
    ----------
    arrays : dict
        The columns of `Trace.to_dict`.
    chosen : iterable of int, optional
        The arrays that count; default: all.

    Returns
    -------
    times, sums : list of int
        Nanoseconds and bytes. A birth and a death at one time overlap.
    """
    changes = []
    for array in range(len(arrays["born"])) if chosen is None else chosen:
        nbytes = arrays["nbytes"][array]
        changes.append((arrays["born"][array], 0, nbytes))
        if arrays["died"][array] is not None:
            # An escaped array is copied first: both copies exist at that time.
            changes.append((arrays["died"][array], 1, -nbytes))
    changes.sort()
    times, sums, total = [], [], 0
    for time, _, change in changes:
        total += change
        times.append(time)
        sums.append(total)
    return times, sums


def peak_of(data):
    """Return (time, bytes) of the peak of recorded arrays."""
    times, sums = curve_of(data["arrays"])
    if not sums:
        return 0, 0
    peak = max(sums)
    return times[sums.index(peak)], peak


def alive_at(arrays, time):
    """Return the numbers of the arrays that were alive at a time."""
    return [
        array
        for array, (born, died) in enumerate(
            zip(arrays["born"], arrays["died"], strict=True)
        )
        if born <= time and (died is None or died >= time)
    ]


def maker_of(data, array):
    """Return the line that made an array."""
    stack = data["arrays"]["stack"][array]
    lines = () if stack is None else data["stacks"][stack]
    return data["lines"][lines[0]] if lines else "an unknown line"


def only_on(data, backend):
    """Return the trace with the arrays of one backend, by its number, alone."""
    columns = data["arrays"]
    chosen = [i for i, each in enumerate(columns["backend"]) if each == backend]
    return data | {
        "arrays": {
            name: [column[i] for i in chosen] for name, column in columns.items()
        }
    }


def makers_at_peak(data):
    """Return (bytes, number of arrays, line) for each maker, largest first."""
    time, _ = peak_of(data)
    sums = {}
    for array in alive_at(data["arrays"], time):
        entry = sums.setdefault(maker_of(data, array), [0, 0])
        entry[0] += data["arrays"]["nbytes"][array]
        entry[1] += 1
    found = [(nbytes, count, line) for line, (nbytes, count) in sums.items()]
    return sorted(found, key=lambda entry: (-entry[0], entry[2]))


def step_curve(times, values, end):
    """Return the corners of a curve that keeps each value until the next time."""
    xs, ys = [], []
    for i, (time, value) in enumerate(zip(times, values, strict=True)):
        xs += [time, times[i + 1] if i + 1 < len(times) else end]
        ys += [value, value]
    return xs, ys


def reserved_curves(data):
    """Return the name of each backend, and the times and values of its reserve.

    A backend that came as the recording ended has none, and is left out.
    """
    curves = [(backend["name"], [], []) for backend in data["backends"]]
    columns = data["memory"]
    for time, backend, reserved in zip(
        columns["time"], columns["backend"], columns["reserved"], strict=True
    ):
        curves[backend][1].append(time)
        curves[backend][2].append(reserved)
    return [curve for curve in curves if curve[1]]


def phase_peaks(data):
    """Return (name, runs, peak of live bytes, most bytes that a run kept) of phases."""
    times, sums = curve_of(data["arrays"])
    found = {}
    for begin, end, name, _ in zip(*data["phases"].values(), strict=True):
        first = bisect_right(times, begin) - 1
        last = bisect_right(times, data["end"] if end is None else end)
        before = sums[first] if first >= 0 else 0
        within = sums[first + 1 : last]
        entry = found.setdefault(name, [0, 0, 0])
        entry[0] += 1
        entry[1] = max(entry[1], before, *within)
        entry[2] = max(entry[2], (within[-1] if within else before) - before)
    return [(data["phase_names"][name], *entry) for name, entry in found.items()]


def scope_peaks(data):
    """Return what `phase_peaks` does, for the scopes of workspaces."""
    names = [each["name"] for each in data["workspaces"]]
    scopes = data["scopes"]
    numbers = [names.index(names[each]) for each in scopes["workspace"]]
    phases = {name: scopes[name] for name in ("begin", "end")}
    phases |= {"name": numbers, "thread": scopes["thread"]}
    return phase_peaks(data | {"phase_names": names, "phases": phases})


def summary_text(data, most):
    """Return the table of `Trace.summary`."""
    arrays = data["arrays"]
    time, peak = peak_of(data)
    makers = makers_at_peak(data)
    alive = [i for i, died in enumerate(arrays["died"]) if died is None]
    count = sum(entry[1] for entry in makers)
    head = (
        f"{len(arrays['born'])} arrays in {data['end'] / 1e9:.4g} s; peak "
        f"{format_size(peak)} in {count} arrays at {time / 1e9:.4g} s"
    )
    lines = [head]
    for name, _, reserved in reserved_curves(data):
        lines.append(f"backend {name!r}: {format_size(max(reserved))} reserved at most")
    if alive:
        total = sum(arrays["nbytes"][i] for i in alive)
        lines.append(f"alive at the end: {format_size(total)} in {len(alive)} arrays")
    lines += [
        f"phase {name!r}: peak {format_size(highest)}, {runs} runs, each kept "
        f"{format_size(kept)} at most"
        for name, runs, highest, kept in phase_peaks(data)
    ]
    if data["dropped"]:
        lines.append(
            f"{data['dropped']} arrays that died before "
            f"{data['complete_from'] / 1e9:.4g} s are forgotten: "
            "record(max_events=...) keeps more"
        )
    if data["missed"]:
        lines.append(
            f"{data['missed']} arrays were not recorded, as the log was full of live "
            "ones: record(max_events=...) keeps more"
        )
    if makers[:most]:
        lines += ["", "at the peak   share  arrays  made at"]
    rows = makers[:most]
    if makers[most:]:
        nbytes, count = (sum(entry[i] for entry in makers[most:]) for i in (0, 1))
        rows = [*rows, (nbytes, count, f"{len(makers) - most} other lines")]
    for nbytes, count, line in rows:
        share = nbytes / max(peak, 1)
        lines.append(f"{format_size(nbytes):>11}  {share:6.1%}  {count:6}  {line}")
    return "\n".join(lines)
