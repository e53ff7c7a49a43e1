"""Sizes in bytes, as users write them and as messages show them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndx._lib.sizes import format_size, parse_size

POWERS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


@given(st.integers(0, 2**63 - 1))
def test_ints_are_bytes(nbytes):
    assert parse_size(nbytes) == nbytes
    assert parse_size(str(nbytes)) == nbytes
    assert parse_size(f" {nbytes} B ") == nbytes


@given(st.integers(0, 1000), st.sampled_from(list(POWERS)), st.booleans())
def test_units(number, letter, spaced):
    gap = " " * spaced
    small, large = 1000 ** POWERS[letter], 1024 ** POWERS[letter]
    for unit, factor in (
        (f"{letter}B", small),
        (f"{letter}iB", large),
        (letter, large),
        (f"{letter}IB".lower(), large),
    ):
        assert parse_size(f"{number}{gap}{unit}") == number * factor


def test_fractions():
    assert parse_size("1.5KiB") == 1536
    assert parse_size(".5 KB") == 500
    assert parse_size("2.MB") == 2_000_000
    # An int, of which no digit is lost.
    assert parse_size("9223372036854775807") == 2**63 - 1


def test_what_is_an_int_to_python():
    assert parse_size(np.int32(7)) == 7
    assert parse_size(np.array(7)) == 7


@pytest.mark.parametrize(
    "text", ["", "MiB", "1 2", "1XB", "-1", "1e3", "inf", "nan", "0x10", "1,5GB", "1Ki"]
)
def test_no_sizes(text):
    with pytest.raises(ValueError, match=r"limit=.* is not a size; .*'64MiB'"):
        parse_size(text, "limit")


@pytest.mark.parametrize("value", [1.5, None, True, b"1KiB", [1], 1j])
def test_wrong_types(value):
    name = type(value).__name__
    with pytest.raises(TypeError, match=f"limit must be an int or a string.*{name}"):
        parse_size(value, "limit")


@pytest.mark.parametrize(
    "value",
    [
        *(2**63, "8388608TiB", 10**30, "9999999999PB"),
        pytest.param(10**5000, id="long"),
        *("9" * 400 + ".5", "9" * 5000 + "GiB"),
    ],
)
def test_beyond_the_address_space(value):
    with pytest.raises(ValueError, match="beyond the address space"):
        parse_size(value)


def test_many_zeros():
    assert parse_size("0" * 5000 + "7KiB") == 7168
    assert parse_size("0." + "0" * 5000) == parse_size("0.") == parse_size(".0") == 0


def test_negative_and_long():
    with pytest.raises(ValueError, match="is negative"):
        parse_size(-(10**5000))


def test_negative():
    with pytest.raises(ValueError, match="size=-1 is negative"):
        parse_size(-1)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2**20, "1 MiB"),
        (3 * 2**30, "3 GiB"),
        (2**40, "1 TiB"),
        (-2048, "-2 KiB"),
    ],
)
def test_format(nbytes, text):
    assert format_size(nbytes) == text


@given(st.integers(0, 2**63 - 1))
def test_what_is_shown_can_be_parsed(nbytes):
    shown = format_size(nbytes)
    if "e" not in shown:
        found = parse_size(shown)
        assert abs(found - nbytes) <= 0.001 * nbytes
