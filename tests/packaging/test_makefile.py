"""The two commands of the README and what stands around them, as far as they can be read without running them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def make(*arguments: str) -> str:
    env = {"PATH": os.environ["PATH"]}  # without what a make around these tests says to the makes inside it
    return subprocess.run(
        ["make", *arguments], cwd=CHECKOUT, env=env, capture_output=True, text=True, check=True
    ).stdout


def test_help_lists_every_documented_target():
    named = re.findall(r"^([a-z-]+):.*## ", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    assert {line.split()[0] for line in make("help").splitlines()} == set(named) >= {"run", "test", "check", "bench"}


def test_arguments_after_run_are_passed_to_cockpit():
    assert ".venv/bin/cockpit engine status" in make("--dry-run", "run", "engine", "status")
    assert ".venv/bin/cockpit jobs -o json" in make("--dry-run", "run", "ARGS=jobs -o json")


def bare_project(folder: Path) -> tuple[Path, Path]:
    """Return a project that has the set-up script alone, in a path with a space, and that script."""
    project = folder / "a project"
    (project / "tools").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    setup = project / "tools" / "setup"
    setup.write_bytes((CHECKOUT / "tools" / "setup").read_bytes())
    setup.chmod(0o755)
    return project, setup


@pytest.mark.parametrize(
    ("words", "status", "shown"),
    [
        ("Python 3.10.13", 0, "(Python 3.10.13)"),
        ("python: error while loading shared libraries: libpython3.12.so.1.0", 127, "loading shared libraries"),
    ],
)
def test_an_unsuitable_python_is_reported_with_its_own_message(tmp_path: Path, words: str, status: int, shown: str):
    project, setup = bare_project(tmp_path)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = --version ] || exit 1\necho "{words}" >&2\nexit {status}\n')
    python.chmod(0o755)
    env = {**os.environ, "PYTHON": str(python)}
    run = subprocess.run([setup], env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert f"PYTHON={python} is no Python 3.11 or newer (" in run.stderr
    assert shown in run.stderr
    assert not (project / ".venv").exists()


def test_a_second_setup_changes_nothing(tmp_path: Path):
    project, setup = bare_project(tmp_path)
    (project / ".venv/bin").mkdir(parents=True)
    (project / ".venv/bin/python").symlink_to("/bin/true")
    fingerprint = subprocess.run(["cksum"], input="", capture_output=True, text=True, check=True).stdout
    (project / ".venv/.ready").write_text(f"{project}\n{fingerprint}")
    run = subprocess.run([setup], capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert "installing" not in run.stderr
