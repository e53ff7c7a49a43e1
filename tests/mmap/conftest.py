"""Folders and small disks for the tests of memory in files."""

import os
import subprocess

import pytest


@pytest.fixture
def small_disk(tmp_path):
    """Return a function that makes a file system of so many bytes."""
    mounted = []

    def mount(nbytes, *options):
        path = tmp_path / f"disk{len(mounted)}"
        path.mkdir()
        words = ",".join((f"size={nbytes}", *options))
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", words, "tmpfs", path],
            capture_output=True,
            text=True,
        )
        if made.returncode:
            pytest.skip(f"no file system can be mounted: {made.stderr.strip()}")
        mounted.append(path)
        return path

    if os.name != "posix":
        pytest.skip("there is no mount")
    yield mount
    for path in mounted:
        subprocess.run(["umount", "-l", path], check=True)
