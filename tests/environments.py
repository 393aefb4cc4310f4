"""Python environments built without a network, of what the environment that runs the tests has."""

from __future__ import annotations

import compileall
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[1]
NEVER_RUN = shutil.ignore_patterns("tests", "include", "f2py", "*.pyi", "*.a")
"""Of what distributions bring: two files in three, which would be copied and removed for nothing."""
NOBODY = 65534
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def needed_by(name: str, seen: set[str]) -> set[str]:
    """Names of all distributions that one needs at run time, itself included."""
    if name not in seen:
        seen.add(name)
        for line in distribution(name).requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed_by(requirement.name.lower(), seen)
    return seen


def needed_by_checkout(*, without: set[str]) -> set[str]:
    """Names of all distributions that cockpit needs, as its pyproject.toml says; those of `without` are left out."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    names = {Requirement(line).name.lower() for line in project["dependencies"]} - without
    seen: set[str] = set()
    for name in names:
        needed_by(name, seen)
    return seen


def installed_parts(name: str) -> set[Path]:
    """The files and folders that a distribution has put into site-packages."""
    installed = distribution(name)
    tops = {file.parts[0] for file in installed.files or () if file.parts[0] not in {"..", "__pycache__"}}
    return {Path(str(installed.locate_file(top))) for top in tops}


def lend(names: set[str], site_packages: Path) -> None:
    """Link installed distributions into another environment: what a download would put there."""
    for name in names:
        for part in installed_parts(name):
            link = site_packages / part.name
            if not link.exists():
                link.symlink_to(part)


def python_for_everybody() -> str:
    """Return a Python that every user of this machine can run, of the version that runs the tests: packages are built
    for one version. Empty where there is none, such as where that version lies in root's home alone. Only for root.
    """
    own = sys._base_executable  # type: ignore[attr-defined]  # typeshed leaves it out
    candidates = (f"/usr/bin/{_VERSION}", f"/usr/local/bin/{_VERSION}", own)
    return next((each for each in candidates if _nobody_can_run(each)), "")


def _nobody_can_run(python: str) -> bool:
    command = [python, "-IS", "-c", "import venv"]
    try:
        done = subprocess.run(
            command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", check=False, capture_output=True, timeout=60
        )
    except OSError:  # it is not there, or in a folder that is closed
        return False
    return done.returncode == 0


def environment_for_everybody(folder: Path, *, also: Collection[str] = ()) -> Path:
    """The python of an environment that every user can read: a copy of this checkout and of what it needs at the
    command line, and of the distributions in `also`. What runs the tests may lie in somebody's home. Skips the test
    where there is no Python that everybody can run.
    """
    python = python_for_everybody()
    if not python:
        pytest.skip(f"no {_VERSION} that ordinary users can run: {sys.base_prefix} is closed to them")
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    (site_packages,) = (folder / "lib").glob("python*/site-packages")
    names = needed_by_checkout(without={"asyncssh", "kubernetes", "rich", "textual"})
    for name in also:
        needed_by(name, names)
    for name in names:
        for part in installed_parts(name):
            _copy(part, site_packages / part.name)
    _copy(CHECKOUT / "cockpit", site_packages / "cockpit")
    compileall.compile_dir(site_packages, quiet=2)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True, timeout=60)
    return folder / "bin" / "python"


def _copy(part: Path, target: Path) -> None:
    if part.is_dir():
        shutil.copytree(part, target, dirs_exist_ok=True, ignore=NEVER_RUN)
    else:
        shutil.copy2(part, target)
