"""The options of `python -m ndx run`: what they mean, and which are refused."""

import os

import pytest
from helpers.commands import call, refusal, run, says

POSIX = pytest.mark.skipif(os.name != "posix", reason="fork and files are POSIX")


@POSIX
def test_a_fallback_has_a_limit_to_begin_at(tmp_path):
    source = "import ndx; print(ndx.current_backend().limit)"
    half = int(says(run(tmp_path, source, "--fallback", "mmap")))
    share = int(says(run(tmp_path, source, "--limit", "50%")))
    assert half == share
    assert 2**20 < half < 2**45
    script = tmp_path / "script.py"
    done = call(
        "run", "--fallback", "mmap", script, cwd=tmp_path, NDX_HOST_LIMIT="3MiB"
    )
    assert says(done) == "3145728\n"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--limit", "much"), "limit='much' is not a size"),
        (("--limit", "-1"), "limit"),
        (("--limit", "120%"), "is more than all there is"),
        (("--limit", ""), "limit='' is not a size"),
        (("--limit",), "expected one argument"),
        (("--fallback", "mmmap"), "--fallback mmmap: the only one is 'mmap'"),
        (("--fallback", "simulated"), "--fallback simulated: the only one is 'mmap'"),
        (("--fallback", "mmap", "--directory", "missing"), "No such file or directory"),
        (("--fallback", "mmap", "--directory", "script.py"), "Not a directory"),
        (("--fallback", "simulated", "--directory", "."), "is for --fallback mmap"),
        (("--fallback", "host"), "arrays beyond it are for 'mmap'"),
        (("--directory", "."), "--directory is for --fallback mmap"),
        (("--trace", "out.svg"), "one of .html, .json"),
        (("--trace", "missing/out.html"), "is no folder that can be written to"),
        (("--memory", "3"), "unrecognized arguments"),
    ],
)
def test_what_is_wrong(options, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("print('ran')")
    script = ("script.py",) * bool(options[1:])
    assert text in refusal(capsys, "run", *options, *script)
    assert os.listdir(tmp_path) == ["script.py"]


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ((), "SCRIPT"),
        (("missing.py",), "can't read the script 'missing.py'"),
        (("-",), "can't run a script from the standard input"),
        (("-m", "no_such_module"), "no module named 'no_such_module'"),
        (("-m",), "SCRIPT"),
    ],
)
def test_no_program(program, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert text in refusal(capsys, "run", "--report", *program)


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs a tmpfs")
def test_files_in_memory_are_no_relief(capsys):
    options = ("--fallback", "mmap", "--directory", "/dev/shm")
    said = refusal(capsys, "run", *options, __file__)
    assert "'/dev/shm' is in memory itself (tmpfs): give a folder on a disk" in said


@POSIX
def test_a_folder_that_can_not_be_written_to(tmp_path, capsys):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):
        folder = "/proc"
    options = ("--fallback", "mmap", "--directory", folder)
    said = refusal(capsys, "run", *options, __file__)
    assert "directory= must be a folder in which files can be made" in said


def test_help(tmp_path):
    done = call("run", "--help", cwd=tmp_path)
    for text in ("--limit", "80%", "--fallback", "--directory", "--trace", "--report",
                 "limit of its own"):  # fmt: skip
        assert text in " ".join(says(done).split())
