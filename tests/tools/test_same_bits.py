"""Results of two machines are compared by their bits, and NumPy's stand beside them."""

import json

import numpy as np
import pytest
import same_bits

import ndx


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_signs_count_but_those_of_nan(dtype):
    nan = np.asarray([np.nan], dtype)
    assert same_bits.digest(nan) == same_bits.digest(-nan)
    zero = np.zeros(1, dtype)
    assert same_bits.digest(zero) != same_bits.digest(-zero)


def test_dtypes_and_shapes_count():
    found = {
        same_bits.digest(x)
        for x in (np.zeros(2, "f4"), np.zeros(1, "f8"), np.zeros((1, 1), "f8"))
    }
    assert len(found) == 3


def test_what_a_line_changes_counts_as_its_result():
    x = ndx.zeros(3)
    before = same_bits.run("x[0]", {"x": x})
    assert same_bits.run("x[1] = 1.0", {"x": x}) != before
    assert same_bits.run("x[0]", {"x": x}) != before


def test_an_error_is_a_result():
    x = np.zeros(3)
    assert same_bits.run("x[5]", {"x": x}) == same_bits.run("x[7]", {"x": x})
    assert same_bits.run("x[5]", {"x": x}) != same_bits.run("x.y", {"x": x})


@pytest.mark.parametrize(
    ("there", "wrong", "kind"),
    [
        (["in", "np", "ndx"], [], "all results are the same"),
        (["other", "other", "other"], [], "the operands differ"),
        (["in", "other", "other"], [], "NumPy differs, and ndx"),
        (["in", "other", "ndx"], [], "only NumPy differs"),
        (["in", "np", "other"], ["x"], "only ndx differs"),
    ],
)
def test_only_what_numpy_computes_alike_is_an_error(there, wrong, kind, capsys):
    assert same_bits.compare({"x": ["in", "np", "ndx"]}, {"x": there}) == wrong
    assert f"1 {kind}" in capsys.readouterr().out


def test_the_status_says_whether_only_ndx_differs(tmp_path, monkeypatch, capsys):
    points = [("xp.add(a, b)", 3, "float64", "contiguous")]
    monkeypatch.setattr(same_bits, "points", lambda: points)
    file = tmp_path / "bits.json"
    assert same_bits.main(["--write", str(file)]) == 0
    assert same_bits.main(["--compare", str(file)]) == 0
    found = json.loads(file.read_text())
    (point,) = found
    found[point][2] = "0"
    file.write_text(json.dumps(found))
    assert same_bits.main(["--compare", str(file)]) == 1
    assert point in capsys.readouterr().err
