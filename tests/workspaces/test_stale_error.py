"""What StaleArrayError knows: the array, the workspace, the expression, the operand."""

import copy
import gc
import linecache
import multiprocessing
import pickle
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from helpers.commands import run_python

import ndx


def stale(**config):
    with ndx.workspace("step", **config):
        loss = ndx.ones((2, 3), dtype="float32")
    return loss


def outer_function(x):
    return ndx.linalg.vector_norm(x)


# fmt: off
EXPRESSIONS = {
    "loss + 1": lambda loss, y: loss + 1,
    "y * loss": lambda loss, y: y * loss,
    "loss[0]": lambda loss, y: loss[0],
    "ndx.sum(loss)": lambda loss, y: ndx.sum(loss),
    "ndx.matmul(y, loss)": lambda loss, y: ndx.matmul(y, loss),
    "ndx.linalg.vector_norm(loss)": lambda loss, y: ndx.linalg.vector_norm(loss),
    "float(loss)": lambda loss, y: float(loss),
    "ndx.concat([y, loss])": lambda loss, y: ndx.concat([y, loss]),
}
# fmt: on


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_it_names_the_operation_and_the_operand(text):
    with pytest.raises(ndx.StaleArrayError) as caught:
        EXPRESSIONS[text](stale(), ndx.ones((3, 2)))
    error = caught.value
    assert error.operation == text
    assert error.operand == "loss"
    assert f"It was used in `{text}`, as `loss`. " in str(error)


def test_it_names_the_innermost_line_of_the_user():
    with pytest.raises(ndx.StaleArrayError) as caught:
        outer_function(stale())
    assert caught.value.operation == "ndx.linalg.vector_norm(x)"
    assert caught.value.operand == "x"


def test_pythons_own_modules_are_no_line_of_the_user():
    loss = [stale()]
    with pytest.raises(ndx.StaleArrayError) as caught:
        copy.deepcopy(loss)
    assert caught.value.operation == "copy.deepcopy(loss)"
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(ndx.sum, loss[0]).exception()
    assert isinstance(error, ndx.StaleArrayError)
    assert error.operation is None
    assert "It was used" not in str(error)


class Model:
    def __init__(self, w):
        self.w = w

    @property
    def bias(self):
        raise AssertionError("no code of users runs for a message")

    def __getattr__(self, name):
        raise AssertionError("no code of users runs for a message")

    def run(self, x):
        return x + self.w

    def run_all(self, x):
        return ndx.concat(
            [x, self.w, *self.__dict__.get("bias", ())],
        )


def test_it_names_an_attribute_of_an_object():
    model = Model(stale())
    with pytest.raises(ndx.StaleArrayError) as caught:
        model.run(ndx.ones((2, 3)))
    assert caught.value.operation == "x + self.w"
    assert caught.value.operand == "self.w"


def test_an_expression_on_several_lines_is_one():
    with pytest.raises(ndx.StaleArrayError) as caught:
        Model(stale()).run_all(ndx.ones((2, 3)))
    text = 'ndx.concat([x, self.w, *self.__dict__.get("bias", ())])'
    assert caught.value.operation == text
    assert caught.value.operand == "self.w"


def returned_stale(x):
    with ndx.workspace("worker"):
        return x + 1


def used_stale(x):
    return str(stale() + x)


# The processes of pytest have threads, of which a fork may warn.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)
@pytest.mark.parametrize("tool", ["concurrent", "ndx.parallel"])
def test_a_forked_worker_names_no_line_of_its_parent(tool):
    def work(function):
        if tool == "ndx.parallel":
            options = {"processes": 1, "start_method": "fork"}
            return list(ndx.parallel.map(function, [ndx.ones(3)], **options))
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            return executor.submit(function, ndx.ones(3)).result()

    def answer(function):
        with pytest.raises(ndx.StaleArrayError) as caught:
            work(function)
        return caught.value

    error = answer(returned_stale)
    assert (error.operation, error.operand) == (None, None)
    assert answer(used_stale).operation == "stale() + x"


def test_a_long_expression_is_cut_off():
    loss = stale()
    with pytest.raises(ndx.StaleArrayError) as caught:
        ndx.concat(
            [loss, ndx.ones((2, 3)), ndx.ones((2, 3)), ndx.ones((2, 3)), ndx.ones(1)]
        )
    assert len(caught.value.operation) == 80
    assert caught.value.operation.startswith("ndx.concat([loss, ndx.ones(")
    assert caught.value.operation.endswith("...")
    assert caught.value.operand == "loss"


def test_an_array_without_a_name_has_none():
    arrays = [stale()]
    with pytest.raises(ndx.StaleArrayError) as caught:
        arrays[0] + 1
    assert caught.value.operation == "arrays[0] + 1"
    assert caught.value.operand is None
    assert "It was used in `arrays[0] + 1`. To" in str(caught.value)


def test_its_attributes():
    loss = stale()
    workspace = ndx.workspace("step")
    with pytest.raises(ndx.StaleArrayError) as caught:
        loss += 1
    error = caught.value
    assert (error.shape, error.dtype) == ((2, 3), "float32")
    assert error.workspace == "step"
    assert error.generation == workspace.generation - 1
    assert error.current == workspace.generation
    assert error.operation == "loss += 1"
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_of_an_array_that_was_closed():
    x = ndx.ones(3)
    x.close()
    with pytest.raises(
        ndx.StaleArrayError, match=r"in `x \+ x`, as `x`\. To"
    ) as caught:
        x + x
    assert caught.value.workspace is caught.value.generation is None
    assert caught.value.shape == (3,)


def test_without_source_it_says_what_it_can():
    spaces = {"x": stale(), "ndx": ndx}
    with pytest.raises(ndx.StaleArrayError, match="is reused. To keep") as caught:
        exec("x + 1", spaces)
    assert caught.value.operation is caught.value.operand is None
    assert caught.value.workspace == "step"


def test_executed_text_is_not_that_of_the_command():
    program = (
        "import ndx; spaces = {'ndx': ndx}\n"
        "with ndx.workspace('step'): spaces['x'] = ndx.ones(3)\n"
        "with ndx.workspace('step'): pass\n"
        "try: exec('x + 1', spaces)\n"
        "except ndx.StaleArrayError as error: print(error.operation)"
    )
    assert run_python(program) == "None\n"


def test_a_source_that_can_not_be_read_hides_nothing(monkeypatch):
    def broken(filename, lineno):
        raise OSError("no such disk")

    loss = stale()
    monkeypatch.setattr(linecache, "getline", broken)
    with pytest.raises(ndx.StaleArrayError, match="is reused. To keep") as caught:
        loss + 1
    assert caught.value.operation is caught.value.operand is None


def test_it_says_all_ways_out():
    with pytest.raises(ndx.StaleArrayError) as caught:
        stale() + 1
    for way in ("x.detach()", "x[...] = y", "escape='detach'", "debug=True"):
        assert way in str(caught.value)
    ndx.workspace("step").destroy()
    loss = stale(debug=True)
    with pytest.raises(ndx.StaleArrayError) as caught:
        loss + 1
    assert "debug=True" not in str(caught.value)
    assert "test_stale_error.py" in str(caught.value)


def test_it_keeps_no_array_of_the_frame_alive():
    loss = stale()
    other = ndx.ones(5)
    gone = weakref.ref(other)
    with pytest.raises(ndx.StaleArrayError):
        loss + 1
    del other
    gc.collect()
    assert gone() is None


def test_it_leaves_a_dict_of_the_frame_alone():
    """Until Python 3.13, what locals() returns is one and the same dict."""
    loss = stale()
    mine = locals()
    with pytest.raises(ndx.StaleArrayError) as caught:
        loss + 1
    assert caught.value.operand == "loss"
    assert mine["loss"] is loss


def test_it_forgets_no_name_that_is_not_a_variable():
    loss = stale()
    exec("hidden = 7")
    kept = "hidden" in locals()
    with pytest.raises(ndx.StaleArrayError):
        loss + 1
    assert ("hidden" in locals()) == kept


def test_variables_of_closures_and_modules_have_names():
    loss = stale()

    def inner():
        return loss + 1

    with pytest.raises(ndx.StaleArrayError) as caught:
        inner()
    assert caught.value.operand == "loss"
    globals()["of_the_module"] = loss
    try:
        with pytest.raises(ndx.StaleArrayError) as caught:
            of_the_module + 1  # noqa: F821
    finally:
        del globals()["of_the_module"]
    assert caught.value.operand == "of_the_module"
