"""Build the package in ``consumer/`` once, out of tree, against the installed ndx."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.threads import wait_until

SOURCE = Path(__file__).parent / "consumer"


def build(folder):
    shutil.copytree(SOURCE, folder)
    command = [sys.executable, "setup.py", "build_ext", "--inplace", "egg_info"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if os.name == "posix":
        environment["CFLAGS"] = environment.get("CFLAGS", "") + " -O1"
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )
    return result.returncode, result.stdout + result.stderr


@pytest.fixture(scope="session")
def consumer_path(tmp_path_factory):
    """Folder with the built package; the processes of one run share it."""
    for module in ("Cython", "setuptools"):
        pytest.importorskip(module)
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, outcome = root / "consumer", root / "consumer-built.txt"
    try:
        (root / "consumer-lock").mkdir()
    except FileExistsError:
        wait_until(outcome.exists, 240)
    else:
        status, output = 1, "the build was cut off"
        try:
            status, output = build(folder)
        finally:
            unfinished = root / "consumer-unfinished.txt"
            unfinished.write_text(f"{status}\n{output}", encoding="utf-8")
            unfinished.rename(outcome)
    status, output = outcome.read_text(encoding="utf-8").split("\n", 1)
    if status != "0":
        pytest.fail(f"the consumer could not be built:\n{output}")
    return folder


@pytest.fixture(scope="session")
def built(consumer_path):
    """Return the modules of the built package by their names."""
    sys.path.insert(0, str(consumer_path))
    importlib.invalidate_caches()
    yield importlib.import_module
    sys.path.remove(str(consumer_path))


@pytest.fixture(scope="session")
def consumer(built):
    return built("consumer")


@pytest.fixture(params=["plain", "plain_cpp"])
def plain(built, request):
    return built(request.param)


@pytest.fixture
def run_python(consumer_path):
    """Run code in a process of its own; return what it printed, or fail."""

    def run(code):
        path = os.pathsep.join(
            [str(consumer_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        result = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", code],
            env={**os.environ, "PYTHONPATH": path},
            cwd=consumer_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    return run
