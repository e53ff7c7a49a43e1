"""Each of the behaviours that ND4J's own tests assert has a test here, or a reason.

``@pytest.mark.nd4j(number, ...)`` marks a test; the numbers are those of our list of
what those tests assert, in the order of its suites: BasicWorkspaceTests 1-31,
DebugModeTests 32-35, SpecialWorkspaceTests, CyclicWorkspaceTests and
CudaWorkspaceTests 36-44, WorkspaceProviderTests 45-72, EndlessWorkspaceTests 73-81.
"""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[2]
ALL = range(1, 82)

# The behaviours without a test.
REASONS = {
    42: "only timing, of 10^6 no-ops with 20 operands: ratios are in asv_bench",
    72: "only timing, of copies from host to device: waits for the CUDA backend",
    80: "only timing, of an enter, two allocations, an operation and an exit: "
    "asv_bench/benchmarks/bench_workspace.py",
}


def marked(path):
    """Yield the numbers that mark the tests in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) in (
                    "nd4j",
                    "pytest.mark.nd4j",
                ):
                    assert node.name.startswith("test_")
                    yield from map(ast.literal_eval, mark.args)


def test_each_number_is_tested_or_has_a_reason():
    numbers = {n for path in TESTS.rglob("test_*.py") for n in marked(path)}
    assert numbers <= set(ALL)
    assert numbers.isdisjoint(REASONS), "tested: no reason is needed"
    assert sorted(numbers | set(REASONS)) == list(ALL)
