"""Another distribution, `ndx`, in the folder of ours: what `import ndx` says of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ndx

OTHER = '"""Annotated HTML directory index generator."""\n'
REPAIR = "`pip uninstall ndx ndxarray`, then `pip install ndxarray`"


@pytest.fixture
def site(tmp_path):
    """Return a folder in which ndx is installed, as links to the real files."""
    package = tmp_path / "site" / "ndx"
    package.mkdir(parents=True)
    for path in Path(ndx.__file__).parent.iterdir():
        if path.name != "__pycache__":
            (package / path.name).symlink_to(path)
    return package.parent


def add_other(site, *, replaces):
    """Install the other distribution, as pip would: it asks nobody."""
    metadata = site / "ndx-0.6.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: ndx\nVersion: 0.6.1"
    )
    (site / "ndx" / "main.py").write_text("")
    if replaces:
        (site / "ndx" / "__init__.py").unlink()
        (site / "ndx" / "__init__.py").write_text(OTHER)


def remove_other(site):
    """Uninstall it: pip removes the files that it lists."""
    for name in ("ndx-0.6.1.dist-info/METADATA", "ndx/main.py", "ndx/__init__.py"):
        (site / name).unlink()
    (site / "ndx-0.6.1.dist-info").rmdir()


def python(site, *arguments):
    return subprocess.run(
        [sys.executable, "-B", *arguments],
        cwd=site.parent, env={**os.environ, "PYTHONPATH": str(site), "PATH": ""},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def last_line(done):
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_alone_there_is_no_warning_and_no_metadata_is_read(site):
    code = "import sys, ndx; print(ndx.__file__, 'importlib.metadata' in sys.modules)"
    done = python(site, "-W", "error", "-c", code)
    assert done.stdout == f"{site / 'ndx' / '__init__.py'} False\n", done.stderr


def test_a_namesake_beside_it(site):
    add_other(site, replaces=False)
    (site.parent / "program.py").write_text("import ndx\nprint(ndx.sum(ndx.ones(3)))\n")
    done = python(site, "program.py")
    assert done.stdout == "3.0\n", done.stderr
    warning = done.stderr.splitlines()[0]
    assert "program.py:1: RuntimeWarning: the distribution `ndx` 0.6.1, " in warning
    assert f"(the distribution `ndxarray`), {site}" in warning
    assert warning.endswith(REPAIR)


def test_a_name_that_only_begins_like_it_is_no_namesake(site):
    for name in ("ndx_pose-0.4.0.dist-info", "ndxarray-0.1.0.dist-info", "ndx-notes"):
        (site / name).mkdir()
    assert python(site, "-W", "error", "-c", "import ndx").returncode == 0


@pytest.mark.parametrize("name", ["linalg", "parallel", "backends"])
def test_a_namesake_in_its_place(site, name):
    add_other(site, replaces=True)
    assert python(site, "-c", "import ndx").returncode == 0, "the other one"
    message = last_line(python(site, "-c", f"import ndx.{name}"))
    assert "has the __init__.py of another project with the same import" in message
    assert str(site / "ndx" / "__init__.py") in message
    assert message.endswith(REPAIR)


def test_a_namesake_that_was_uninstalled(site):
    add_other(site, replaces=True)
    remove_other(site)
    # Without site-packages: a package there would be preferred to one without __init__.
    message = last_line(python(site, "-S", "-c", "import ndx.linalg"))
    assert "has no __init__.py any more: the distribution `ndx`" in message
    assert message.endswith(REPAIR)


def test_a_namesake_and_no_compiled_modules(site):
    add_other(site, replaces=False)
    for path in (site / "ndx").glob("_compiled.*"):
        path.unlink()
    (site / "ndx" / "_core.pyx").unlink(missing_ok=True)
    message = last_line(python(site, "-W", "ignore", "-c", "import ndx"))
    assert "has no compiled modules for Python 3." in message
    assert "In addition, the distribution `ndx` 0.6.1, another project" in message


def test_info_tells_of_a_namesake_anywhere(site):
    add_other(site, replaces=False)
    done = python(site, "-W", "ignore", "-m", "ndx", "info")
    assert f"same import name: `ndx` 0.6.1 in {site}" in done.stdout, done.stderr
