"""The text of ``fn.explain()``."""


def explain(name, entries, unfit):
    """Return how a fused function computes each kind of arguments it has met.

    Parameters
    ----------
    name : str
    entries : list
        With a `label`, and `about` or a `reason`; and whether it was `replayed`, and
        the calls that were not, `called`.
    unfit : int
        Calls with arguments of which no recording can be made.
    """
    lines = []
    for entry in entries:
        lines.append(f"{name}({entry.label})")
        if entry.about is None:
            lines.append(f"  called as it is: {entry.reason}")
            continue
        if entry.outside:
            lines.append(f"  reads, at each call: {', '.join(entry.outside)}")
        if entry.called and not entry.replayed:
            reasons = "; ".join(reason for _, reason in entry.called)
            lines.append(f"  called as it is: {reasons}")
            continue
        lines += [f"  {line}" for line in entry.about]
        lines += [f"  {n} call(s) as they are: {why}" for n, why in entry.called]
    if unfit:
        lines.append(
            f"{unfit} call(s) as they are, with arguments that are not recorded: "
            "arrays of other dtypes or devices, huge integers, more than 24 arrays"
        )
    return "\n".join(lines or [f"{name} has not been called"])
