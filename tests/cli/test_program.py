"""How programs are run where Python's own, private ways are not there."""

import runpy
import sys
from collections import UserDict
from multiprocessing import process, spawn

import pytest
from helpers.commands import finish, start

from ndx._cli.numpy_placement import Placement

WITHOUT = """
import runpy, sys
del runpy._run_module_as_main
sys.argv[:] = ["ndx", "run", *sys.argv[1:]]
import ndx.__main__
ndx.__main__.main()
"""


@pytest.mark.parametrize("way", ["module", "folder"])
def test_without_the_private_function_of_runpy(way, tmp_path):
    assert callable(runpy._run_module_as_main)
    (tmp_path / "package").mkdir()
    main = tmp_path / "package" / "__main__.py"
    main.write_text("import sys\nprint(__name__, __file__, sys.argv)\nsys.exit(3)\n")
    (tmp_path / "start.py").write_text(WITHOUT)
    program = ["-m", "package"] if way == "module" else ["package"]
    done = finish(start("start.py", *program, "a", cwd=tmp_path))
    first = str(main) if way == "module" else "package"
    assert done.returncode == 3, done.stderr
    assert done.stdout.split() == ["__main__", str(main), f"['{first}',", "'a']"]


def test_without_what_processes_inherit(monkeypatch):
    monkeypatch.setattr(spawn, "get_preparation_data", spawn.get_preparation_data)
    config = UserDict(process.current_process()._config)
    monkeypatch.setattr(process.current_process(), "_config", config)
    before = set(config)
    Placement("1MiB")._follow_children()
    assert set(config) == before
    found = spawn.get_preparation_data("child")
    assert (found["name"], found["sys_argv"]) == ("child", sys.argv)
    assert "1MiB" in repr(found["ndx"].__reduce__())
