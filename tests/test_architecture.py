"""Walls that import contracts cannot express. `make check` runs these beside ruff, mypy and import-linter."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).parents[1]
PACKAGE = CHECKOUT / "cockpit"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PYTHON_FILES = [*SOURCES, *sorted((CHECKOUT / "tests").rglob("*.py")), *sorted((CHECKOUT / "tools").rglob("*.py"))]

HOMELESS = {"util", "utils", "helper", "helpers", "common", "misc"}
STANDALONE = (
    "cockpit.elastic",
    "cockpit.elastic_callbacks",
    "cockpit.elastic_torchrun",
    "cockpit.runtime.containers.shim",
)
"""Run by training scripts' own Pythons, or beside a container long after an upgrade: the standard library only."""
DISTRIBUTIONS = {"yaml": "pyyaml"}
"""Where the import name is not the distribution's."""


def name_of(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def imported_modules(file: Path) -> set[str]:
    """Dotted names of the modules that a file imports or imports from, at any depth of its code."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module))
    return names


def imported_packages(file: Path) -> set[str]:
    """Their top-level packages outside the standard library."""
    return {name.partition(".")[0] for name in imported_modules(file)} - sys.stdlib_module_names


def module_of(file: Path) -> str:
    return name_of(file.with_suffix("")).replace("/", ".").removesuffix(".__init__")


def modules_after(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after running `code`."""
    script = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


EVERY_HEADLESS_MODULE = """
import importlib, pkgutil, cockpit.headless
for module in pkgutil.walk_packages(cockpit.headless.__path__, "cockpit.headless."):
    importlib.import_module(module.name)
"""


def test_headless_loads_no_screen_and_no_foreign_client():
    assert not modules_after(EVERY_HEADLESS_MODULE) & {"textual", "asyncssh", "kubernetes"}


def test_starting_headless_loads_neither_asyncio_nor_rich():
    assert not modules_after("import cockpit.headless") & {"asyncio", "rich", "yaml", "sqlite3"}


def test_the_package_itself_imports_nothing():
    assert imported_modules(PACKAGE / "__init__.py") == set()


def test_standalone_files_use_the_standard_library_only():
    for room in STANDALONE:
        for file in [each for each in SOURCES if f"{module_of(each)}.".startswith(f"{room}.")]:
            ours = {name for name in imported_modules(file) if f"{name}.".startswith(f"{room}.")}
            others = {
                name for name in imported_modules(file) - ours if name.partition(".")[0] in imported_packages(file)
            }
            assert others == set(), file


def test_every_import_is_a_declared_dependency():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = [each for name, group in project["optional-dependencies"].items() if name != "dev" for each in group]
    declared = {canonicalize_name(Requirement(each).name) for each in [*project["dependencies"], *extras]}
    outside = {name for file in SOURCES for name in imported_packages(file)} - {"cockpit"}
    assert {canonicalize_name(DISTRIBUTIONS.get(name, name)) for name in outside} <= declared


def test_no_path_has_a_generic_name():
    paths = [
        path for top in (PACKAGE, CHECKOUT / "tests") for path in top.rglob("*") if "__pycache__" not in path.parts
    ]
    homeless = [name_of(path) for path in paths if HOMELESS & set(path.stem.lower().split("_"))]
    assert homeless == [], "a homeless function shows a missing noun: name it"


IGNORE = re.compile(r"#\s*(noqa|type:\s*ignore|ruff:\s*noqa|mypy:)", re.IGNORECASE)
REASONED = re.compile(
    r"# (?:noqa: [A-Z]+\d+(?:, ?[A-Z]+\d+)*|type: ignore\[[a-z-]+(?:, ?[a-z-]+)*\])"  # what is ignored …
    r"(?: {1,2}# | - | — | )\w.{3,}"  # … and why
)


def unreasoned_ignores(source: str) -> list[str]:
    """Comments that silence a tool without naming the code and the reason."""
    if not IGNORE.search(source):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return [comment for comment in comments if IGNORE.search(comment) and not REASONED.search(comment)]


@pytest.mark.parametrize(
    ("comment", "fine"),
    [
        ("# noqa: BLE001 - a broken hook must not end the host", True),
        ("# type: ignore[attr-defined]  # set by the plugin above", True),
        ("# noqa: S108 the container's own", True),
        ("# a comment about noqa-free code", True),
        ("# noqa: BLE001", False),
        ("# noqa", False),
        ("# type: ignore", False),
        ("# type: ignore[attr-defined]", False),
        ("# ruff: noqa", False),
    ],
)
def test_an_ignore_is_recognised(comment: str, fine: bool):
    assert (unreasoned_ignores(f"x = 1  {comment}\n") == []) is fine


def test_every_ignore_comment_names_its_code_and_reason():
    found = {name_of(file): unreasoned_ignores(file.read_text()) for file in PYTHON_FILES}
    assert {name: comments for name, comments in found.items() if comments} == {}


def test_every_rule_disabled_for_many_files_has_its_reason():
    text = (CHECKOUT / "pyproject.toml").read_text()
    ruff = text[text.index("[tool.ruff.lint]") : text.index("[tool.mypy]")]
    ruff = ruff[ruff.index("ignore = [") :]
    codes = [line.strip() for line in ruff.splitlines() if re.match(r'\s+"[A-Z]+\d*"', line)]
    assert len(codes) > 10
    assert [line for line in codes if not re.search(r"# \w.{7,}", line)] == []


def test_every_dependency_has_its_reason():
    text = (CHECKOUT / "pyproject.toml").read_text()
    project = text[text.index("dependencies = [") : text.index("[project.scripts]")]
    requirements = [line.strip() for line in project.splitlines() if re.match(r'\s+"', line)]
    assert len(requirements) > 10
    assert [line for line in requirements if not re.search(r", # \w.{7,}", line)] == []


def test_every_import_contract_has_its_reason():
    lines = (CHECKOUT / "pyproject.toml").read_text().splitlines()
    contracts = [number for number, line in enumerate(lines) if line == "[[tool.importlinter.contracts]]"]
    assert len(contracts) > 5
    assert [lines[number + 1] for number in contracts if not lines[number - 1].startswith("# ")] == []
