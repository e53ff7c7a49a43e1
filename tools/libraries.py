"""Run the tests of libraries that are written for NumPy on `ndx.numpy`.

Each row of `tables/libraries.toml` names a library, its version and its tests. Its
source distribution is taken from the package index. One copy is tested as it is; in
a second one `ndx.numpy` takes NumPy's place, in the library and in its tests. What
passes in the first has to pass in the second, but for the differences in the table.
Nothing of the libraries is kept in the repository.

Usage: ``python tools/libraries.py [NAME ...] [-n PROCESSES]``, with names of the table.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from fnmatch import fnmatchcase
from pathlib import Path

from numpys_suite import rewritten

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tools/tables/libraries.toml"
FOLDER = ROOT / "build/libraries"
FACES = ("numpy", "ndx.numpy")
# A part of a library may be stuck where another kind of array comes back to it.
TIMEOUT = 60


def distribution(library: dict) -> Path:
    """Return the source distribution of a library, from the package index if need be.

    pip builds the metadata of what it downloads, and so gets what that needs.
    """
    name, version = library["name"], library["version"]
    folder = FOLDER / "distributions" / f"{name}-{version}"
    if not list(folder.glob("*")):
        command = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps"]
        command += ["--disable-pip-version-check", "--no-binary", name]
        command += ["--dest", str(folder), f"{name}=={version}"]
        subprocess.run(command, check=True)
    (found,) = folder.glob("*")
    return found


def copies(library: dict) -> dict[str, Path]:
    """Unpack a library twice, the second time with `ndx.numpy`; return the folders."""
    archive = distribution(library)
    made = {}
    for face in FACES:
        folder = FOLDER / face / library["name"]
        shutil.rmtree(folder, ignore_errors=True)
        shutil.unpack_archive(archive, folder, filter="data")
        (made[face],) = folder.iterdir()
        describe(library, made[face])
    for path in made["ndx.numpy"].rglob("*.py"):
        # What is no module of Python 3 is not imported either.
        with contextlib.suppress(SyntaxError, ValueError):
            path.write_text(rewritten(path.read_text("utf-8")), "utf-8")
    return made


def describe(library: dict, folder: Path) -> None:
    """Make the library known to `importlib.metadata`, as one that is installed."""
    name = library["name"].replace("-", "_")
    information = folder / library.get("path", ".")
    information /= f"{name}-{library['version']}.dist-info"
    information.mkdir(exist_ok=True)
    shutil.copy(folder / "PKG-INFO", information / "METADATA")


def outcomes(library: dict, folder: Path, processes: str) -> dict[str, str]:
    """Run the tests of a copy; return the outcome of each test, by its name."""
    report = folder / "outcomes.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", f"-n={processes}"]
    command += ["-p", "no:randomly", "-p", "no:cacheprovider", f"--timeout={TIMEOUT}"]
    # Without the library's own options, which need plugins, and make warnings errors.
    command += ["-c", os.devnull, f"--rootdir={folder}", f"--junit-xml={report}"]
    # By `CI` Hypothesis draws the same examples for both, and takes its time.
    environment = dict(os.environ, MPLBACKEND="agg", CI="true")
    paths = [str(folder / library.get("path", ".")), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    with (folder / "output.txt").open("w") as output:
        subprocess.run(
            [*command, *library["tests"]],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if not report.exists():
        msg = f"{library['name']}: pytest made no report; see {output.name}"
        raise RuntimeError(msg)
    found = {}
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        unlike = [each.tag for each in case if each.tag in ("failure", "error")]
        skipped = case.find("skipped") is not None
        found[name] = unlike[0] if unlike else "skipped" if skipped else "passed"
    return found


def judge(library: dict, found: dict[str, dict[str, str]]) -> list[str]:
    """Print what a library's tests gave; return what is not as the table has it."""
    expected = {
        pattern: difference["cause"]
        for difference in library.get("differences", [])
        for pattern in difference["tests"]
    }
    good = [name for name, outcome in found["numpy"].items() if outcome == "passed"]
    differ = [name for name in good if found["ndx.numpy"].get(name) != "passed"]
    share = (len(good) - len(differ)) / max(len(good), 1)
    print(
        f"{library['name']:<18} {library['version']:<8} {len(good):>7}"
        f" {len(good) - len(differ):>9} {share:>8.1%}",
        flush=True,
    )
    problems = [] if good else [f"{library['name']}: no test passes with NumPy"]
    causes = dict.fromkeys(expected.values(), 0)
    for name in differ:
        cause = next((c for p, c in expected.items() if fnmatchcase(name, p)), None)
        if cause is None:
            outcome = found["ndx.numpy"].get(name, "missing")
            problems.append(f"{library['name']}: {outcome}: {name}")
        else:
            causes[cause] += 1
    for cause, count in causes.items():
        print(f"    {count:>5}  {cause}")
        if not count:
            problems.append(f"{library['name']}: nothing differs: {cause!r}")
    return problems


def main() -> int:
    """Test the libraries; return the exit status."""
    libraries = tomllib.loads(TABLE.read_text(encoding="utf-8"))["library"]
    names = [library["name"] for library in libraries]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("-n", "--processes", default="auto", help="of the tests")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(names):
        parser.error(f"{TABLE.name} has no {', '.join(sorted(unknown))}")
    print(f"{'library':<18} {'version':<8} {'numpy':>7} {'ndx.numpy':>9} {'':>8}")
    problems = []
    for library in libraries:
        if not chosen.names or library["name"] in chosen.names:
            found = {
                face: outcomes(library, folder, chosen.processes)
                for face, folder in copies(library).items()
            }
            problems += judge(library, found)
    print("\n".join([*problems, f"libraries: {len(problems)} problem(s)"]))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
