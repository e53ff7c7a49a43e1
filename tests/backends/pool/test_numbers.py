"""Each behaviour that other pools' own tests assert has a test here, or a reason.

The numbers are those of our list of what they assert, by suite: CuPy's memory pools,
hooks and pinned memory 1-37, RMM's Python tests 38-57, RMM's C++ tests 58-69, MXNet's
70-73, NumPy's memory policy 74-76. ``test_NN_...`` in this folder is a test of NN.
"""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
ALL = range(1, 77)

# Tests in other files, and what they say of the behaviour.
ELSEWHERE = {
    # Another stream gets a freed range, but after a wait.
    7: "backends/pool/test_streams.py"
    "::test_another_streams_memory_is_taken_after_a_wait",
    # What one pool keeps idle is flushed before the request of another one fails.
    32: "backends/pool/test_failures.py::test_other_pools_give_up_what_is_idle",
    # A tracking adaptor lists what is live; of stacked ones each counts for itself.
    42: "memory/test_monitoring.py::test_who_made_what_is_live",
    # Scopes of statistics nest, and may count below 0.
    44: "memory/test_monitoring.py::test_scopes_nest",
    # A profiler adds up calls and peaks by name; its report may be empty.
    47: "memory/test_monitoring.py::test_profiles_add_up",
    # A log has a header, and a line for each request, failed ones too.
    50: "memory/test_monitoring.py::test_a_log_as_rmm_writes_it",
    # A log can be flushed, and go to an open file.
    67: "memory/test_monitoring.py::test_a_log_to_an_open_file",
    # A process may end with live memory.
    69: "backends/pool/test_process.py::test_exit_with_live_memory",
    # NumPy's allocator is each task's own, and threads start without it.
    75: "context/test_numpy_memory.py::test_tasks_have_their_own",
}

# The behaviours without a test: what is asserted, and why not here.
REASONS = {
    30: "adding to pointers, and copies to and from them, on streams: a Buffer gives "
    "its address as an int, and copies are made by whoever reads it",
    34: "a hook that prints JSON lines: hooks are functions (33), the log is RMM's CSV "
    "(50), and recordings write JSON (tests/memory/test_formats.py)",
    35: "a hook that adds up by lines of the program: ndx.memory.record does that, "
    "from another kind of log (tests/memory/test_record.py)",
    36: "advice to the driver about managed memory: there is no such memory here",
    37: "4, 6, 9, 12, 14, 19 and 20 again, for page-locked host memory: there is no "
    "such source; those tests run over each source that there is",
    45: "counters on a stack that is pushed and popped by hand, and underflows: scopes "
    "are context managers",
    46: "functions that do nothing until statistics are switched on: they always are",
    52: "functions to call when the library is initialised anew: it never is",
    55: "PyTorch's tensors in our memory, by its pluggable allocator: not offered",
    56: "comparing and hashing stream objects: streams are plain integers here",
    57: "CUDA's own asynchronous pools, taken by handle: there is no such source",
    65: "a release with a wrong size, or of an unknown address: memory is released by "
    "the object that owns it, which takes neither",
    68: "bins of chosen sizes over a pool of another kind: the size classes are fixed; "
    "what their bounds do is tested by 6 and 71",
    73: "a table of live ranges with requested and actual sizes, in a file of its own "
    "format (MXNet skips the test itself): ndx.memory.snapshot has these, and tests of "
    "pools compare them with their users (helpers.pools.check)",
    74: "the names of NumPy's allocators, as its arrays report them: by a private "
    "function of NumPy; what ours serves is in tests/context/test_numpy_memory.py",
    76: "arrays made to own data that NumPy has not allocated: it is NumPy that frees "
    "these",
}


def functions(path):
    return [
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]


def test_each_number_is_tested_or_has_a_reason():
    here = Path(__file__).parent
    names = [name for path in here.glob("test_*.py") for name in functions(path)]
    numbers = {int(m[1]) for name in names if (m := re.match(r"test_(\d\d)_", name))}
    groups = [numbers, set(ELSEWHERE), set(REASONS)]
    assert sorted(number for group in groups for number in group) == list(ALL)


@pytest.mark.parametrize("number", ELSEWHERE)
def test_what_is_tested_elsewhere_is_there(number):
    file, name = ELSEWHERE[number].split("::")
    assert name in functions(TESTS / file)
