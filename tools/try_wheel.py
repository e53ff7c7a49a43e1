"""Test a wheel as its users get it: in an empty environment, out of the checkout.

Make a virtual environment, install the newest wheel of a folder and what its tests
need, unpack the sdist beside it, and run the sdist's tests there. The package in the
sdist is removed first: programs that tests start in this folder would find it, and not
the wheel's.

Usage: ``python tools/try_wheel.py [--dist DIST] [--folder FOLDER] [--core] [PYTEST]``
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

# For a wheel, its root is in the environment, with what other packages compile against.
CHECK = """
import pathlib, sys
import ndx
root = pathlib.Path(ndx.__file__).parent
assert root.is_relative_to(sys.prefix), f"{root} is not in {sys.prefix}"
for name in ("__init__.pxd", "py.typed", "include/ndx/ndx.h", "memory/page/page.html"):
    assert (root / name).is_file(), f"the wheel has no {name}"
sources = [path for kind in ("*.pyx", "*.c") for path in root.rglob(kind)]
assert not sources, f"the wheel has {sources}"
size = sum(path.stat().st_size for path in root.rglob("*.*"))
print(f"ndx {ndx.__version__}: {size / 1e6:.1f} MB in {root}")
"""


def newest(folder: Path, pattern: str) -> Path:
    """Return the file that was made last; exit if there is none."""
    found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        sys.exit(f"no {pattern} in {folder}: run `make wheel`")
    return found[-1]


def environment(folder: Path) -> str:
    """Make an empty environment with this interpreter; return its Python."""
    venv.create(folder, clear=True, with_pip=True, symlinks=os.name != "nt")
    scripts = "Scripts" if os.name == "nt" else "bin"
    return str(folder / scripts / "python")


def main(arguments: list[str] | None = None) -> int:
    """Test the newest wheel; return the exit status of the tests."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("--dist", type=Path, default=Path("dist"))
    parser.add_argument("--folder", type=Path, default=Path("build/try-wheel"))
    parser.add_argument(
        "--core", action="store_true", help="install the tests' core group only"
    )
    options, rest = parser.parse_known_args(arguments)
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    free = "t" in getattr(sys, "abiflags", "")  # of the GIL
    abi = f"{version}t" if free else version
    wheel = newest(options.dist, f"ndxarray-*-{version}-{abi}-*.whl").resolve()
    sdist = newest(options.dist, "ndxarray-*.tar.gz").resolve()
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)

    shutil.rmtree(options.folder, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(options.folder, filter="data")
    [tree] = options.folder.iterdir()
    shutil.rmtree(tree / "ndx")
    python = environment(options.folder.resolve() / "environment")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    groups = ["test-core"] if options.core else ["test", "build"]
    if free and not options.core:
        groups[0] = "test-without-gil"
    extras = "" if options.core or free else "[examples]"
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    subprocess.run(
        [*pip, f"{wheel}{extras}", *(f"--group={group}" for group in groups)],
        check=True, cwd=tree,
    )  # fmt: skip
    subprocess.run([python, "-P", "-c", CHECK], check=True, cwd=tree)
    return subprocess.run(
        [python, "-P", "-m", "pytest", *rest], check=False, cwd=tree
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
