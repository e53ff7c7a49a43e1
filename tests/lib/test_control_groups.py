"""What the process may have: the limits of its control groups, real and made up."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from helpers.sanitizers import counts_pages
from hypothesis import given
from hypothesis import strategies as st

from ndx._lib.control_groups import Group, cpu_quota, memory_group, memory_groups
from ndx._lib.system import (
    available_memory,
    machine_memory,
    memory_for_pages,
    physical_memory,
    usable_cores,
)

GIB = 2**30
NO_LIMIT_1 = 9223372036854771712

MOUNT_2 = "30 23 0:26 {seen} {at} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
MOUNT_1 = "35 31 0:32 {seen} {at} rw,relatime shared:9 - cgroup cgroup rw,memory\n"
OTHERS = (
    "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "a line that is cut short\n"
)


class Tree:
    """A folder that looks like ``/``, as far as memory is concerned."""

    def __init__(self, root, *, total=16 * GIB, available=8 * GIB):
        self.root = root
        self.write(
            "/proc/meminfo",
            f"MemTotal: {total // 1024} kB\nMemAvailable: {available // 1024} kB\n",
        )

    def write(self, path, text):
        """Write a file of the tree."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def process(self, *, groups, mounts):
        """Say in which groups the process is, and where the hierarchies are."""
        self.write("/proc/self/cgroup", groups)
        self.write("/proc/self/mountinfo", OTHERS + mounts)

    def group_2(self, path, limit, used=0, inactive=0):
        """Make a group of version 2; `limit` is "max" or bytes."""
        self.write(f"{path}/memory.max", f"{limit}\n")
        self.write(f"{path}/memory.current", f"{used}\n")
        self.write(f"{path}/memory.stat", f"anon 5\ninactive_file {inactive}\n")

    def group_1(self, path, limit, used=0, inactive=0):
        """Make a group of version 1."""
        self.write(f"{path}/memory.limit_in_bytes", f"{limit}\n")
        self.write(f"{path}/memory.usage_in_bytes", f"{used}\n")
        self.write(
            f"{path}/memory.stat", f"inactive_file 7\ntotal_inactive_file {inactive}\n"
        )


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


TOP = "/sys/fs/cgroup"


def test_a_unit_of_version_2_and_those_above_it(tree):
    tree.process(
        groups="0::/user.slice/job.scope\n", mounts=MOUNT_2.format(seen="/", at=TOP)
    )
    tree.group_2(f"{TOP}/user.slice/job.scope", 4 * GIB, GIB)
    assert memory_groups(tree.root) == [Group(4 * GIB, GIB)]
    assert machine_memory(tree.root) == 4 * GIB
    assert available_memory(tree.root) == 3 * GIB
    # The one above has a smaller limit, and others in it use most of that.
    tree.group_2(f"{TOP}/user.slice", 3 * GIB, 3 * GIB - 5)
    assert memory_group(tree.root) == (3 * GIB, 5)
    assert available_memory(tree.root) == 5
    tree.group_2(f"{TOP}/user.slice", "max", 3 * GIB)
    assert memory_group(tree.root) == (4 * GIB, 3 * GIB)


def test_the_cpu_time_of_a_unit_of_version_2_and_those_above_it(tree):
    tree.process(
        groups="0::/user.slice/job.scope\n", mounts=MOUNT_2.format(seen="/", at=TOP)
    )
    cores = usable_cores(tree.root / "nothing")
    tree.write(f"{TOP}/user.slice/job.scope/cpu.max", "max 100000\n")
    assert cpu_quota(tree.root) is None
    assert usable_cores(tree.root) == cores
    tree.write(f"{TOP}/user.slice/cpu.max", "150000 100000\n")
    assert cpu_quota(tree.root) == 1.5
    assert usable_cores(tree.root) == min(cores, 2)
    tree.write(f"{TOP}/user.slice/job.scope/cpu.max", "5000 100000\n")
    assert usable_cores(tree.root) == 1
    tree.write(f"{TOP}/user.slice/job.scope/cpu.max", "a file cut short")
    assert cpu_quota(tree.root) == 1.5


def test_the_cpu_time_of_a_job_of_version_1(tree):
    tree.process(groups="3:cpu,cpuacct:/job\n4:memory:/other\n", mounts="")
    assert cpu_quota(tree.root) is None
    tree.write(f"{TOP}/cpu/job/cpu.cfs_quota_us", "-1\n")
    tree.write(f"{TOP}/cpu/job/cpu.cfs_period_us", "100000\n")
    assert cpu_quota(tree.root) is None
    tree.write(f"{TOP}/cpu/job/cpu.cfs_quota_us", "50000\n")
    assert cpu_quota(tree.root) == 0.5
    assert usable_cores(tree.root) == 1


def test_a_job_of_version_1_and_those_above_it(tree):
    tree.process(
        groups="9:name=systemd:/\n4:cpu,memory:/slurm/uid_1/job_2\n3:cpuset:/x\n0::/\n",
        mounts=MOUNT_1.format(seen="/", at=f"{TOP}/memory"),
    )
    top = f"{TOP}/memory"
    tree.group_1(top, NO_LIMIT_1, 9 * GIB)
    tree.group_1(f"{top}/slurm", 12 * GIB, 9 * GIB)
    tree.group_1(f"{top}/slurm/uid_1", NO_LIMIT_1, GIB)
    tree.group_1(f"{top}/slurm/uid_1/job_2", 2 * GIB, GIB)
    assert memory_groups(tree.root) == [Group(2 * GIB, GIB), Group(12 * GIB, 9 * GIB)]
    assert machine_memory(tree.root) == 2 * GIB
    assert available_memory(tree.root) == GIB
    assert memory_for_pages(tree.root) == GIB


def test_pages_of_files_are_free(tree):
    tree.process(groups="0::/a\n", mounts=MOUNT_2.format(seen="/", at=TOP))
    tree.group_2(f"{TOP}/a", 2 * GIB, 2 * GIB, inactive=GIB)
    assert available_memory(tree.root) == GIB
    tree.process(groups="4:memory:/a\n", mounts=MOUNT_1.format(seen="/", at=TOP))
    tree.group_1(f"{TOP}/a", 2 * GIB, 2 * GIB, inactive=GIB // 2)
    assert available_memory(tree.root) == GIB // 2


def test_both_versions_at_once(tree):
    tree.process(
        groups="4:memory:/job\n0::/unit\n",
        mounts=MOUNT_1.format(seen="/", at=f"{TOP}/memory")
        + MOUNT_2.format(seen="/", at=f"{TOP}/unified"),
    )
    tree.group_1(f"{TOP}/memory/job", 2 * GIB, GIB)
    assert machine_memory(tree.root) == 2 * GIB
    tree.group_2(f"{TOP}/unified/unit", GIB, 0)
    assert machine_memory(tree.root) == GIB


@pytest.mark.parametrize("path", ["/", "/docker/abc", "/../other", "/elsewhere"])
def test_a_container_that_sees_only_its_own_groups(tree, path):
    """Whether or not it has names of its own for them, and whatever those are."""
    seen = "/docker/abc"
    tree.process(groups=f"0::{path}\n", mounts=MOUNT_2.format(seen=seen, at=TOP))
    tree.group_2(TOP, GIB, 5)
    assert memory_groups(tree.root) == [Group(GIB, 5)]


def test_a_group_inside_of_a_container(tree):
    tree.process(
        groups="0::/docker/abc/inner\n",
        mounts=MOUNT_2.format(seen="/docker/abc", at=TOP),
    )
    tree.group_2(TOP, 4 * GIB, 5)
    tree.group_2(f"{TOP}/inner", GIB, 5)
    assert memory_groups(tree.root) == [Group(GIB, 5), Group(4 * GIB, 5)]


def test_a_mount_point_with_a_space(tree):
    tree.process(
        groups="0::/a:b\n",
        mounts=MOUNT_2.format(seen="/", at="/mnt/control\\040groups"),
    )
    tree.group_2("/mnt/control groups/a:b", GIB, 5)
    assert machine_memory(tree.root) == GIB


def test_where_the_kernel_does_not_say_where_they_are(tree):
    tree.write("/proc/self/cgroup", "4:memory:/job\n")
    tree.group_1(f"{TOP}/memory/job", GIB)
    assert machine_memory(tree.root) == GIB


def test_without_limits_or_files_it_is_the_machine(tree, tmp_path):
    assert memory_group(tree.root) == (None, None)
    assert machine_memory(tree.root) == physical_memory(tree.root) == 16 * GIB
    assert available_memory(tree.root) == 8 * GIB
    tree.process(groups="0::/a\n", mounts=MOUNT_2.format(seen="/", at=TOP))
    tree.group_2(f"{TOP}/a", "max", 5)
    assert machine_memory(tree.root) == 16 * GIB
    tree.group_2(f"{TOP}/a", 64 * GIB, 5)
    assert machine_memory(tree.root) == 16 * GIB
    assert available_memory(tree.root) == 8 * GIB
    nothing = tmp_path / "nothing"
    assert memory_group(nothing) == (None, None)
    assert machine_memory(nothing) > 0
    assert available_memory(nothing) > 0


@given(
    st.integers(1, 2),
    st.lists(
        st.tuples(st.none() | st.integers(0, 2**40), st.integers(0, 2**40)),
        min_size=1,
        max_size=5,
    ),
)
def test_the_least_of_all_counts(tmp_path_factory, version, groups):
    tree = Tree(tmp_path_factory.mktemp("tree"))
    names = [f"g{number}" for number in range(len(groups))]
    path = "".join(f"/{name}" for name in names)
    mount = MOUNT_2 if version == 2 else MOUNT_1
    tree.process(
        groups=f"0::{path}\n" if version == 2 else f"1:memory:{path}\n",
        mounts=mount.format(seen="/", at=TOP),
    )
    for number, (limit, used) in enumerate(groups):
        place = TOP + "".join(f"/{name}" for name in names[: number + 1])
        if version == 2:
            tree.group_2(place, "max" if limit is None else limit, used)
        else:
            tree.group_1(place, NO_LIMIT_1 if limit is None else limit, used)
    bounded = [(limit, used) for limit, used in groups if limit is not None]
    limit, left = memory_group(tree.root)
    if not bounded:
        assert (limit, left) == (None, None)
    else:
        assert limit == min(each for each, _ in bounded)
        assert left == min(max(0, most - used) for most, used in bounded)


def own_group():
    """Return the folder of the process's own memory group, and its version."""
    text = Path("/proc/self/cgroup").read_text(encoding="ascii")
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path(f"{TOP}/memory{path}"), 1
    path = text.partition("0::")[2].split("\n")[0]
    return Path(TOP + path), 2


@pytest.fixture
def real_group():
    """Make a group of 200 MiB below the process's own, if this machine lets us."""
    try:
        parent, version = own_group()
        group = parent / f"ndx-{uuid.uuid4().hex}"
        group.mkdir()
    except (OSError, IndexError, ValueError) as error:
        pytest.skip(f"no control groups can be made here: {error}")
    try:
        name = "memory.limit_in_bytes" if version == 1 else "memory.max"
        try:
            (group / name).write_text(str(200 * 2**20), encoding="ascii")
        except OSError as error:
            pytest.skip(f"no limit can be set here: {error}")
        yield group
    finally:
        group.rmdir()


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
@counts_pages
def test_a_real_group(real_group):
    """Percentages, `info`, reserves and defaults obey it."""
    code = f"""
import os
open({str(real_group / "cgroup.procs")!r}, "w").write(str(os.getpid()))
import ndx
limit = 200 * 2**20
ndx.memory.set_limit("50%")
print(ndx.memory.limit() == limit // 2)
print(ndx.backends.get("host", limit="50%").limit == limit // 2)
found = ndx.memory.info("host")
print(found.total == limit, 0 < found.free <= limit)
from ndx._lib.system import memory_for_pages
print(memory_for_pages() <= limit // 2)
ndx.memory.set_limit(None)
with ndx.use("host", reserve_fraction=0.5) as backend:
    # So that only what is to be left to others makes the pool give anything back.
    peak = ndx.empty(17_000_000)
    del peak
    backend.trim()
    x = [ndx.ones(1_000_000) for _ in range(10)]
    del x[::2]
    y = ndx.ones(6_000_000)
    print(backend.stats()["cached_bytes"] < 20_000_000)
    print(found.free - ndx.memory.info("host").free > 40_000_000)
from ndx._cli import info
print("200 MiB" in info.report())
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (result.stdout.split(), result.stderr) == (["True"] * 8, "")
