"""What the system tells: the kind of a file system, and the peak of memory."""

import os
import sys

import pytest
from helpers.commands import run_python

from ndx._lib.system import (
    file_system_type,
    in_memory_file_system,
    peak_resident_memory,
)

MOUNTS = (
    "22 1 {place} / / rw,relatime shared:1 - {kind} /dev/sda1 rw\n"
    "31 22 0:99 / /other rw - tmpfs tmpfs rw\n"
    "a line that is cut short\n"
)


def place_of(path):
    device = os.stat(path).st_dev
    return f"{os.major(device)}:{os.minor(device)}"


@pytest.mark.skipif(os.name != "posix", reason="numbers of devices are POSIX's")
@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "fuse.sshfs"])
def test_the_kind_of_a_file_system(kind, tmp_path):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    text = MOUNTS.format(place=place_of(tmp_path), kind=kind)
    (tmp_path / "proc" / "self" / "mountinfo").write_text(text)
    assert file_system_type(tmp_path, tmp_path) == kind


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_kinds_of_this_machine():
    assert file_system_type("/proc") == "proc"
    if os.path.ismount("/dev/shm"):
        assert file_system_type("/dev/shm") == "tmpfs"
        assert in_memory_file_system("/dev/shm") == "tmpfs"
    assert in_memory_file_system("/proc") is None


def test_what_the_system_does_not_tell(tmp_path):
    assert file_system_type(tmp_path / "missing") is None
    assert file_system_type(tmp_path, tmp_path) is None
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "mountinfo").write_text("")
    assert file_system_type(tmp_path, tmp_path) is None


@pytest.mark.skipif(os.name != "posix", reason="the system does not tell")
def test_the_peak_of_memory_is_of_this_program():
    """Not of the one that started it, which `getrusage` also counts on Linux."""
    program = """
        from ndx._lib.system import peak_resident_memory

        before = peak_resident_memory()
        x = bytearray(64 * 2**20)
        x[::4096] = b"1" * (len(x) // 4096)
        del x
        print(before, peak_resident_memory())
    """
    large = bytearray(512 * 2**20)
    large[::4096] = b"1" * (len(large) // 4096)
    before, after = map(int, run_python(program).split())
    assert 60 * 2**20 < after - before < 80 * 2**20
    if sys.platform.startswith("linux"):
        assert after < len(large) <= peak_resident_memory()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_peak_of_memory_of_another_process():
    assert 0 < peak_resident_memory(os.getpid()) <= peak_resident_memory()
    assert peak_resident_memory(2**22 + 1) == 0


def test_the_peak_of_memory_without_proc(tmp_path):
    peak = peak_resident_memory(root=tmp_path)
    assert peak > 0 or os.name != "posix"
    assert peak_resident_memory(os.getpid(), tmp_path) == 0
