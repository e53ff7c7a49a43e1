"""The types of all compiled modules, used as no valid program does."""

from pathlib import Path

import pytest
from helpers.commands import finish_python, run_python, start_python

import ndx

PROGRAM = (Path(__file__).parents[1] / "helpers/extension_types.py").read_text()


def test_methods_refuse_objects_of_other_types():
    said = finish_python(start_python(PROGRAM, "foreign"))
    assert "ndx._core.NDArray detach int" in said


def test_objects_that_only_new_has_made_do_not_crash():
    said = finish_python(start_python(PROGRAM, "half_made"))
    assert "ndx.backends.pooled.PooledBackend trim" in said


@pytest.mark.parametrize(
    "made",
    [
        "pinned import PinnedBackend as kind; kind(limit='much')",
        "cuda import CudaAsyncSource as kind; kind(device=-1)",
        "cuda_memory import CudaPeerSource as kind; kind(device=-1)",
        "cuda_virtual import CudaVirtualSource as kind; kind(device=-1)",
    ],
)
def test_constructors_that_fail_in_a_base_class(made):
    program = f"""
    try:
        from ndx.backends.{made}
    except Exception as error:
        print("refused")
    """
    assert run_python(program) == "refused\n"


@pytest.mark.parametrize("how", ["__enter__", "__exit__"])
def test_scopes_without_an_object(how):
    with pytest.raises(TypeError, match="Scope"):
        getattr(ndx.no_workspace, how)(None, *[None] * (3 * (how == "__exit__")))


def test_a_scope_whose_backend_was_removed():
    scope = ndx.use("host")
    scope.backend = None
    with pytest.raises(TypeError, match="Backend"):
        scope.__enter__()
