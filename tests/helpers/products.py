"""Large products of parameters: what represents them, and what is left to the night."""

from collections import Counter, defaultdict

# A test with more cases, or one marked `costly`, has its whole product by night alone.
MOST = 200


def left_to_the_night(items):
    """Return the items without which each value of each parameter is still tested."""
    tests = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            tests[item.nodeid.split("[")[0]].append(item)
    return [
        item
        for cases in tests.values()
        if len(cases) > MOST or cases[0].get_closest_marker("costly")
        for item in rest(cases)
    ]


def rest(cases):
    """Return the cases of one test beside a few in which each value occurs.

    Of each value of the longest parameter one case is kept: that whose other values
    were kept least so far.
    """
    cases = sorted(cases, key=lambda case: case.nodeid)
    values = {case: list(enumerate(values_of(case))) for case in cases}
    columns = [set(column) for column in zip(*values.values(), strict=True)]
    longest = columns.index(max(columns, key=len))
    by_value = defaultdict(list)
    for case in cases:
        by_value[values[case][longest]].append(case)
    used, kept = Counter(), set()

    def keep(case):
        kept.add(case)
        used.update(values[case])

    for candidates in by_value.values():
        keep(min(candidates, key=lambda case: sum(used[x] for x in values[case])))
    for case in cases:
        if not all(used[x] for x in values[case]):
            keep(case)
    return [case for case in cases if case not in kept]


def values_of(case):
    """Return which values a case has: those of one `parametrize` are one."""
    params = {name: id(value) for name, value in case.callspec.params.items()}
    found = []
    for mark in case.iter_markers("parametrize"):
        names = mark.args[0]
        if isinstance(names, str):
            names = names.replace(",", " ").split()
        found.append(tuple(params.pop(name) for name in names))
    return [*found, *params.values()]
