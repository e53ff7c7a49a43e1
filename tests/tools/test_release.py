"""The rehearsal of a release: its versions, and what it would upload."""

import io
import re
import shutil
import subprocess
import tarfile
import zipfile

import pytest
import release
from helpers.project import ROOT

GIT = shutil.which("git")
HEADING = "## 9.8.7 (2031-02-03)\n"


@pytest.fixture
def sources(tmp_path):
    """What a release's sources say of their version, in a folder of their own."""
    for name, text in (
        ("ndx/__init__.py", 'x = 1\n__version__ = "9.8.7"  # of the package\n'),
        ("recipe/recipe.yaml", 'context:\n  version: "9.8.7"\nschema_version: 1\n'),
        ("CHANGELOG.md", f"# Changelog\n\n{HEADING}\nNew.\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_places_of_the_version_are_found_once():
    for name, expression in release.PLACES.items():
        path = ROOT / name
        if path.exists():  # the package is not beside the tests of a wheel
            text = path.read_text(encoding="utf-8")
            assert len(re.findall(expression, text)) == 1, name


def test_sources_that_agree_with_their_tag(sources):
    release.check("9.8.7", sources)


@pytest.mark.parametrize("name", [*release.PLACES, "CHANGELOG.md"])
def test_sources_that_name_another_version(sources, name):
    path = sources / name
    path.write_text(path.read_text(encoding="utf-8").replace("9.8.7", "9.8.6"), "utf-8")
    with pytest.raises(SystemExit, match=r"9\.8\.[67]"):
        release.check("9.8.7", sources)


def test_a_changelog_without_a_date(sources):
    text = "# Changelog\n\n## 9.8.7 (unreleased)\n"
    (sources / "CHANGELOG.md").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="year-month-day"):
        release.check("9.8.7", sources)


@pytest.mark.skipif(GIT is None, reason="there is no git")
def test_a_tag_is_made_in_a_clone_and_taken_where_it_is(sources, tmp_path, monkeypatch):
    def git(*arguments, folder=sources):
        command = [*release.GIT, *arguments]
        return subprocess.check_output(command, cwd=folder, text=True).strip()

    changelog = sources / "CHANGELOG.md"
    dated = changelog.read_text(encoding="utf-8")
    changelog.write_text(dated.replace("2031-02-03", "unreleased"), encoding="utf-8")
    for name, expression in release.PLACES.items():
        release.replace(sources / name, expression, "9.8.6.dev0")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "First")
    monkeypatch.setattr(release, "ROOT", sources)
    made = release.Rehearsal("9.8.7", tmp_path / "made")
    made.clone()
    assert git("describe", "--exact-match", folder=made.source) == "v9.8.7"
    assert git("status", "--porcelain", "--untracked-files=no") == ""
    assert git("tag", "--list") == ""

    # A tag that names what its sources don't.
    git("tag", "v9.8.7")
    with pytest.raises(SystemExit, match=r"9\.8\.6\.dev0"):
        release.Rehearsal("9.8.7", tmp_path / "wrong").clone()


def test_files_of_another_version_are_not_uploaded(tmp_path):
    rehearsal = release.Rehearsal("9.8.7", tmp_path)
    rehearsal.dist.mkdir(parents=True)

    def wheel(version):
        name = f"ndxarray-{version}"
        path = rehearsal.dist / f"{name}-cp311-cp311-linux_x86_64.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"{name}.dist-info/METADATA", f"Version: {version}\n")

    wheel("9.8.7")
    with tarfile.open(rehearsal.dist / "ndxarray-9.8.7.tar.gz", "w:gz") as archive:
        text = b"Version: 9.8.7\n"
        member = tarfile.TarInfo("ndxarray-9.8.7/PKG-INFO")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    assert len(rehearsal.rows()) == 2
    sums = (tmp_path / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert [len(line.split()[0]) for line in sums] == [64, 64]
    wheel("9.8.6")
    with pytest.raises(SystemExit, match="9.8.6, not 9.8.7"):
        rehearsal.rows()
