"""A wrong value of an option ends each example with one line, and nothing else."""

import importlib
import sys

import pytest

WRONG = {
    "cluster_pca": ["--limit", "plenty"],
    "filter_images": ["--output", "/no/such/place"],
    "heat_equation": ["--picture", "memory.gif"],
    "larger_than_ram": ["--memory", "100TiB"],
    "train_digits": ["--workers", "0"],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_one_line(name, capsys):
    if name == "cluster_pca":
        pytest.importorskip("distributed")
    example = importlib.import_module(name)
    with pytest.raises(SystemExit) as caught:
        sys.exit(example.main(WRONG[name]))
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert len(captured.err.strip().splitlines()) == 1
    assert not captured.out
