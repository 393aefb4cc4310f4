"""The wheel, built and installed outside the checkout, does what the checkout does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.environments import CHECKOUT, lend, needed_by

pytestmark = pytest.mark.real

COMMANDS = (("--help",), ("schema", "job"), ("jobs",), ("engine", "status", "-o", "json"))

READ_RESOURCES = """
from importlib.resources import files
from cockpit.resources import fixture, theme_files
from cockpit.backends.local.unit import unit_text
print(files("cockpit"))
assert "ExecStart" in unit_text(), "no unit"
assert [file.name for file in theme_files()], "no themes"
assert fixture("README.md").read_text(), "no fixtures"
"""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Its stdout; fails the test with its stderr."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{command} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(environment: Path) -> tuple[str | Path, ...]:
    """Ours, at work in the other environment: to make one of its own takes it longest of all."""
    return sys.executable, "-m", "pip", "--python", environment / "bin" / "python"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel and what the wheel says it needs, nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder)
    run(*build, CHECKOUT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    run(*pip(folder / "venv"), "install", "--no-index", "--no-deps", wheel, cwd=folder)
    (site_packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    lend(needed_by("cockpit-cluster", set()) - {"cockpit-cluster"}, site_packages)
    return folder / "venv"


@pytest.fixture
def home(environment: Path, tmp_path: Path):
    """Variables of somebody who has just installed cockpit; their engine is stopped afterwards."""
    with tempfile.TemporaryDirectory(prefix="cockpit-") as runtime:  # short enough for a socket's path
        env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": runtime}
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            env[name] = str(tmp_path / name.lower())
            Path(env[name]).mkdir(mode=0o700)
        yield env
        run(environment / "bin" / "cockpit", "engine", "stop", "--jobs", cwd=tmp_path, env=env)


def test_the_wheel_declares_all_its_dependencies(environment: Path, tmp_path: Path):
    assert "No broken requirements" in run(*pip(environment), "check", cwd=tmp_path)


def test_data_files_are_in_the_wheel(environment: Path, tmp_path: Path):
    package = run(environment / "bin" / "python", "-c", READ_RESOURCES, cwd=tmp_path)
    assert Path(package.strip()).is_relative_to(environment)


def test_commands_run_from_the_wheel(environment: Path, home: dict[str, str], tmp_path: Path):
    for arguments in COMMANDS:
        assert run(environment / "bin" / "cockpit", *arguments, cwd=tmp_path, env=home) or arguments == ("jobs",)
