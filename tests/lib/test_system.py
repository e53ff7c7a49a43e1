"""What the system tells: the kind of a file system."""

import os
import sys

import pytest

from ndx._lib.system import file_system_type

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


def test_what_the_system_does_not_tell(tmp_path):
    assert file_system_type(tmp_path / "missing") is None
    assert file_system_type(tmp_path, tmp_path) is None
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "mountinfo").write_text("")
    assert file_system_type(tmp_path, tmp_path) is None
