"""The conda recipe asks for what pyproject.toml asks for, and renders."""

import re

import pytest
from helpers.project import PROJECT, PYPROJECT, ROOT

import ndx

yaml = pytest.importorskip("yaml")

FOLDER = ROOT / "recipe"
RECIPE = yaml.safe_load((FOLDER / "recipe.yaml").read_text(encoding="utf-8"))
# What conda packages as a program of its own, beside the requirements of Python's.
PROGRAMS = {"python", "pip"}


def by_name(requirements):
    """Return the bounds of requirements by name, however they are written."""
    split = [re.fullmatch(r"([\w-]+)\s*(.*)", each) for each in requirements]
    return {match[1].lower(): match[2].replace(" ", "") for match in split if match}


def without_programs(requirements):
    return {k: v for k, v in by_name(requirements).items() if k not in PROGRAMS}


def test_requirements_to_build():
    expected = by_name(PYPROJECT["build-system"]["requires"])
    assert without_programs(RECIPE["requirements"]["host"]) == expected


def test_requirements_to_cross_compile():
    [cross] = [each for each in RECIPE["requirements"]["build"] if type(each) is dict]
    host = by_name(RECIPE["requirements"]["host"])
    plain = [each for each in cross["then"] if "$" not in each]
    assert without_programs(plain).items() <= host.items()
    assert {"python", "cython", "numpy"} <= set(by_name(plain))


def test_requirements_to_run():
    run = RECIPE["requirements"]["run"]
    assert without_programs(run) == by_name(PROJECT["dependencies"])
    assert by_name(run)["python"] == PROJECT["requires-python"]


def test_metadata():
    assert RECIPE["context"]["version"] == ndx.__version__
    assert RECIPE["package"]["name"] == PROJECT["name"]
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert RECIPE["about"]["license"] == PROJECT["license"]
    assert (ROOT / RECIPE["about"]["license_file"]).is_file()


# `make recipe` installs rattler-build.
@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64"])
def test_it_renders(platform):
    rattler = pytest.importorskip("rattler_build")
    target = rattler.PlatformConfig(target_platform=platform)
    variants = rattler.VariantConfig.from_file_with_context(
        FOLDER / "variants.yaml", rattler.JinjaConfig(platform=target)
    )
    recipe = rattler.Stage0Recipe.from_file(FOLDER / "recipe.yaml")
    [rendered] = recipe.render(variants, rattler.RenderConfig(platform=target))
    stage = rendered.recipe
    assert (stage.package.name, stage.package.version) == ("ndxarray", ndx.__version__)
    assert any(each.endswith(f"_{platform}") for each in stage.requirements.build)
    assert stage.requirements.run == RECIPE["requirements"]["run"]
