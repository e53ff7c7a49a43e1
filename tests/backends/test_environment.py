"""Options that the environment gives: which holds, and what a misspelt one says."""

import pytest
from helpers.commands import finish, start
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.backends._environment import check_names, read_options
from ndx.backends._registry import BUILTIN, _all_options


def run(code, *, fails=False, **environment):
    result = finish(start("-c", "import ndx\n" + code, **environment))
    assert bool(result.returncode) == fails, result.stderr
    return result.stderr if fails else result.stdout.split("\n")[:-1]


def test_a_fallback_has_the_options_of_its_own_variables(tmp_path):
    code = """
host = ndx.backends.get("host")
print(host.fallback is ndx.backends.get("mmap"))
print(host.fallback.directory, host.fallback.limit)
with ndx.use("host", limit="64KiB"):
    print(ndx.ones(100_000).backend is host.fallback)
"""
    assert run(
        code,
        NDX_HOST_FALLBACK="mmap",
        NDX_MMAP_DIRECTORY=str(tmp_path),
        NDX_MMAP_LIMIT="1GiB",
    ) == ["True", f"{tmp_path} 1073741824", "True"]


@pytest.mark.parametrize(
    "environment",
    [
        {"NDX_HOST_FALLBACK": "mmap", "NDX_MMAP_FALLBACK": "host"},
        {"NDX_HOST_FALLBACK": "host"},
        {
            "NDX_HOST_FALLBACK": "simulated",
            "NDX_SIMULATED_FALLBACK": "mmap",
            "NDX_MMAP_FALLBACK": "simulated",
        },
    ],
)
def test_fallbacks_in_a_circle_are_refused(environment):
    error = run("", fails=True, **environment)
    assert "can't go round in a circle" in error
    assert any(f"{name}={value!r}" in error for name, value in environment.items())


def test_what_the_code_does_not_name_is_as_the_environment_says():
    code = """
get = ndx.backends.get
print(get("host").limit, get("host", idle_release=5).limit)
print(get("host", limit="1MiB").limit, get("host", limit=None).limit)
print(get("host", limit="1MiB").kind, get("host", pool="split").kind)
with ndx.use("host", idle_release=1) as backend:
    print(backend.limit)
print(ndx.set_default("host", idle_release=2).limit)
print(get("simulated", capacity="1MiB").limit)
"""
    assert run(code, NDX_HOST_LIMIT="8MiB", NDX_HOST_POOL="round") == [
        "8388608 8388608", "1048576 None", "round split", "8388608", "8388608", "None",
    ]  # fmt: skip


def test_an_empty_variable_is_none():
    code = "print(ndx.backends.get('host').limit, ndx.memory.limits())"
    empty = {"NDX_HOST_LIMIT": "", "NDX_LIMIT": "", "NDX_BACKEND": ""}
    assert run(code, **empty) == run(code)


def test_an_error_names_the_variables_that_played_a_part():
    code = "ndx.backends.get('host', limit='1MiB')"
    error = run(code, fails=True, NDX_HOST_POOL="arena", NDX_HOST_INITIAL="2MiB")
    assert "initial='2MiB' is more than limit='1MiB'" in error
    assert "NDX_HOST_INITIAL='2MiB'" in error


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NDX_HOST_POOL", "best"),
        ("NDX_HOST_LIMIT", "lots"),
        ("NDX_HOST_LIMITT", "1MiB"),
        ("NDX_HOST_IDLE_RELEASE", "soon"),
        ("NDX_CUDA_RESERVE_FRACTION", "half"),
        ("NDX_MMAP_DIRECTORY", "/nowhere/at/all"),
        ("NDX_HOST_FALLBACK", "hots"),
        ("NDX_LIMIT", "lots"),
        ("NDX_BACKEND", "hots"),
    ],
)
def test_a_bad_variable_is_named_at_the_import(name, value):
    error = run("", fails=True, **{name: value}).strip().split("\n")[-1]
    assert error.startswith("ValueError: in the environment, ")
    assert f"{name}={value!r}" in error


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NDX_HSOT_LIMIT", "NDX_HOST_LIMIT"),
        ("NDX_HST_POOL", "NDX_HOST_POOL"),
        ("NDX_MAP_DIRECTORY", "NDX_MMAP_DIRECTORY"),
        ("NDX_CDUA_LIMIT", "NDX_CUDA_LIMIT"),
        ("NDX_PINED_LIMITS", "NDX_PINNED_LIMIT"),
        ("NDX_LIMITS", "NDX_LIMIT"),
        ("NDX_BACKND", "NDX_BACKEND"),
    ],
)
def test_a_misspelt_variable_is_an_error_that_names_close_ones(name, meant):
    with pytest.raises(ValueError, match=f"{name}='1MiB' is not .*; .* mean .*{meant}"):
        check_names({name: "1MiB", "PATH": "/bin"}, BUILTIN, _all_options)


def test_misspelt_variables_are_found_at_the_import():
    assert "NDX_HOST_LIMIT" in run("", fails=True, NDX_HSOT_LIMIT="1MiB")


@pytest.mark.parametrize(
    "name",
    ["NDX_TEST_CUDA", "NDX_CI", "NDX_STAND_IN", "NDX_WORKSPACE", "NDX_EXAMPLES",
     "NDX_CRASHES", "NDX_FAILS", "NDX_SANITIZE", "NDX_HOSTS_FILE", "NDX_", "NDX",
     "HSOT_LIMIT", "NDX_HOST_LIMIT", "NDX_LIMIT", "NDX_BACKEND", "NDX_SHARED_ADVICE"],
)  # fmt: skip
def test_variables_of_others_are_left_alone(name):
    check_names({name: "1"}, BUILTIN, _all_options)


@given(st.text(alphabet="NDXHOST_LIMCUAE", max_size=14).map("NDX_".__add__))
def test_any_name_is_known_or_foreign_or_named(name):
    text = ""
    try:
        check_names({name: "1"}, BUILTIN, _all_options)
    except ValueError as error:
        text = str(error)
    assert not text or f"{name}='1' is not a variable of ndx; did you mean NDX_" in text


@pytest.mark.parametrize("option", ["idle_release", "reserve_fraction", "latency"])
def test_numbers_and_none(option):
    name = f"NDX_HOST_{option.upper()}"
    assert read_options({name: "None"}, "host") == (
        {option: None}, {option: (name, "None")})  # fmt: skip
    assert read_options({name: "0.5"}, "host")[0] == {option: 0.5}
    with pytest.raises(ValueError, match=f"{name}='x' is not a number"):
        read_options({name: "x"}, "host")


def test_every_option_of_a_backend_is_known():
    assert {"limit", "keep_idle", "page", "directory", "device"} <= _all_options()
    for option in _all_options():
        with pytest.raises(ValueError, match=f"did you mean NDX_MMAP_{option.upper()}"):
            check_names({f"NDX_MMPA_{option.upper()}": "1"}, BUILTIN, _all_options)


def test_bad_options_of_a_gpu_name_their_variable(monkeypatch):
    """They are looked at when the backend is first needed: here, one that is not."""
    monkeypatch.setattr(ndx.backends._registry, "_shared", {})
    monkeypatch.setattr(
        ndx.backends._registry, "_options", {"simulated": {"pool": "best"}}
    )
    monkeypatch.setattr(
        ndx.backends._registry, "_variables",
        {"simulated": {"pool": ("NDX_SIMULATED_POOL", "best")}},
    )  # fmt: skip
    with pytest.raises(
        ValueError, match="in the environment, NDX_SIMULATED_POOL='best': pool='best'"
    ):
        ndx.backends.get("simulated")
    with pytest.raises(ValueError, match="pool='best'") as caught:
        ndx.backends.get("simulated", limit="1MiB")
    assert "NDX_SIMULATED_POOL='best'" in caught.value.__notes__[0]
    assert ndx.backends.get("simulated", pool="naive").kind == "naive"
