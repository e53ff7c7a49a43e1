"""Check that no file exceeds the line cap: beyond it, a file rarely holds one idea.

Generated files don't count.

Usage: ``python tools/check_sizes.py [ROOT_FOLDER]``
"""

import sys
from pathlib import Path

CAP = 1000
FOLDERS = ("ndx", "tests", "tools", "examples", "asv_bench", "docs")
SUFFIXES = {".py", ".pyx", ".pxd", ".pyi", ".h", ".c"}
GENERATED = b"# Generated"


def measure(root: Path) -> dict[str, int]:
    """Return the line count of each source file under `root`."""
    files = [p for folder in FOLDERS for p in (root / folder).rglob("*") if p.is_file()]
    return {
        path.relative_to(root).as_posix(): len(path.read_bytes().splitlines())
        for path in sorted([*files, *root.glob("*.py")])
        if path.suffix in SUFFIXES
        and "_build" not in path.parts
        and not path.read_bytes().startswith(GENERATED)
    }


def main(root: Path) -> int:
    """Report the files above their cap; return the exit status."""
    sizes = measure(root)
    over = {name: lines for name, lines in sizes.items() if lines > CAP}
    for name, lines in sorted(over.items(), key=lambda item: -item[1]):
        print(f"{name}: {lines} lines, cap {CAP}: split it along an idea")
    package = sum(lines for name, lines in sizes.items() if name.startswith("ndx/"))
    print(f"sizes: {len(over)} of {len(sizes)} files too long; ndx/: {package} lines")
    return bool(over)


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[1]
    sys.exit(main(Path(sys.argv[1]).resolve() if sys.argv[1:] else default))
