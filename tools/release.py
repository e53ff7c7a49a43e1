"""Rehearse a release: all of it but the upload.

The source of a release is a tag, whose name is the version. If there is none, it is
made in a clone of what is committed: the version is written where it stands, and the
section of the changelog gets its date. From that clone the sdist is built, and from the
sdist a wheel for each Python, in isolation. Each wheel is installed from the folder of
wheels into an empty environment, where the sdist's tests run. The conda recipe is
rendered, and the documentation of that version built.

Usage: ``python tools/release.py 0.1.0 [--python PYTHON]... [--core TESTS...]
[--skip recipe docs]``, or ``python tools/release.py 0.1.0 --check``, which compares
what the checkout says of its version.
"""

import argparse
import datetime as dt
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where the version is written: the expression finds it.
PLACES = {
    "ndx/__init__.py": r'(?m)(?<=^__version__ = ")[^"]+',
    "recipe/recipe.yaml": r'(?m)(?<=^  version: ")[^"]+',
}
CHANGELOG = "CHANGELOG.md"
GIT = ["git", "-c", "user.name=release", "-c", "user.email=release@localhost"]


class Rehearsal:
    """The clone of a release, and how long each step took there."""

    def __init__(self, version: str, folder: Path) -> None:
        self.version = version
        self.source = folder / "source"
        self.dist = self.source / "dist"
        self.seconds: dict[str, float] = {}

    def run(self, what: str, *command: str) -> None:
        """Run a command in the clone; exit if it fails."""
        print(f"\n==> {what}: {shlex.join(command)}", flush=True)
        start = time.monotonic()
        # Those of `make rehearse` itself are not for each `make` here.
        names = os.environ.keys() - {"ARGS", "MAKEFLAGS", "MFLAGS"}
        status = subprocess.run(
            command,
            cwd=self.source,
            check=False,
            env={name: os.environ[name] for name in names},
        ).returncode
        self.seconds[what] = time.monotonic() - start
        if status:
            sys.exit(f"==> failed: {what} (status {status})")

    def clone(self) -> None:
        """Clone the tag of the version, or make it in a clone of what is committed."""
        shutil.rmtree(self.source, ignore_errors=True)
        self.source.mkdir(parents=True)
        self.run("the clone", "git", "clone", "--quiet", ROOT.as_posix(), ".")
        tag = f"v{self.version}"
        known = ["git", "-C", self.source.as_posix(), "tag", "--list", tag]
        if not subprocess.check_output(known):
            for name, expression in PLACES.items():
                replace(self.source / name, expression, self.version)
            today = dt.datetime.now(tz=dt.UTC).date()
            heading = rf"(?m)(?<=^## ){re.escape(self.version)} \(unreleased\)$"
            replace(self.source / CHANGELOG, heading, f"{self.version} ({today})")
            self.run("its commit", *GIT, "commit", "-q", "-a", "-m", f"Release {tag}")
            self.run("its tag", *GIT, "tag", "-a", tag, "-m", f"ndxarray {tag}")
        self.run("the checkout", *GIT, "checkout", "--quiet", tag)
        check(self.version, self.source)

    def rows(self) -> list[str]:
        """Check what is to be uploaded; return a table, and write SHA256SUMS."""
        rows, sums = [], []
        for path in sorted(self.dist.glob("ndxarray-*")):
            found = metadata(path)["Version"]
            if found != self.version:
                sys.exit(f"{path.name} says that it is {found}, not {self.version}")
            sums.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")
            rows.append(f"{path.stat().st_size / 1e6:6.1f} MB  {path.name}")
        (self.source.parent / "SHA256SUMS").write_text("\n".join([*sums, ""]))
        return rows


def check(version: str, source: Path) -> None:
    """Exit if sources name another version than the tag from which they are."""
    for name, expression in PLACES.items():
        found = re.search(expression, (source / name).read_text(encoding="utf-8"))
        if found is None or found[0] != version:
            says = "no version" if found is None else found[0]
            sys.exit(f"{name} says {says}, and the tag {version}: correct one of them")
    heading = rf"(?m)^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$"
    if not re.search(heading, (source / CHANGELOG).read_text(encoding="utf-8")):
        sys.exit(f"{CHANGELOG} has no section '## {version} (year-month-day)'")


def replace(path: Path, expression: str, text: str) -> None:
    """Replace the one place of a file that an expression finds."""
    new, count = re.subn(expression, text, path.read_text(encoding="utf-8"))
    if count != 1:
        sys.exit(f"{path.name}: {expression!r} was found {count} times, not once")
    path.write_text(new, encoding="utf-8")


def metadata(path: Path) -> Message:
    """Return the metadata of an sdist or a wheel."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            [name] = [x for x in wheel.namelist() if x.endswith(".dist-info/METADATA")]
            return message_from_bytes(wheel.read(name))
    name = path.name.removesuffix(".tar.gz")
    with tarfile.open(path) as sdist, sdist.extractfile(f"{name}/PKG-INFO") as file:
        return message_from_bytes(file.read())


def main(arguments: list[str] | None = None) -> None:
    """Rehearse a release."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("version", help="what is released, such as 0.1.0")
    parser.add_argument("--check", action="store_true", help="compare versions only")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/release")
    parser.add_argument("--python", action="append", help="an interpreter")
    parser.add_argument(
        "--core",
        nargs="+",
        metavar="TESTS",
        help="with each wheel only these, without the libraries that others need",
    )
    parser.add_argument("--skip", nargs="*", default=[], choices=["recipe", "docs"])
    options = parser.parse_args(arguments)
    version = options.version.removeprefix("v")
    if options.check:
        check(version, ROOT)
        return
    rehearsal = Rehearsal(version, options.folder.resolve())
    rehearsal.clone()
    pythons = [f"PYTHON={each}" for each in options.python or [sys.executable]]
    core = ["CORE=1", f"ARGS={' '.join(options.core)}"] if options.core else []
    for each in pythons:
        rehearsal.run(f"the wheel, {each}", "make", "test-wheel", *core, each)
    for each in ("recipe", "docs"):
        if each not in options.skip:
            rehearsal.run(f"make {each}", "make", each, pythons[0])
    rows = rehearsal.rows()
    print("\n==> what took long")
    for what, seconds in rehearsal.seconds.items():
        print(f"{seconds:6.0f} s   {what}")
    print(f"\n==> what would be uploaded, from {rehearsal.dist}")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
