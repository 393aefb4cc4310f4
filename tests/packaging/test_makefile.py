"""The two commands of the README and what stands around them, as far as they can be read without running them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def make(*arguments: str) -> str:
    env = {"PATH": os.environ["PATH"]}  # without what a make around these tests says to the makes inside it
    return subprocess.run(
        ["make", *arguments], cwd=CHECKOUT, env=env, capture_output=True, text=True, check=True
    ).stdout


def test_help_lists_every_target_that_says_what_it_does():
    named = re.findall(r"^([a-z-]+):.*## ", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    assert {line.split()[0] for line in make("help").splitlines()} == set(named) >= {"run", "test", "check", "bench"}


def test_words_after_run_reach_cockpit():
    assert ".venv/bin/cockpit engine status" in make("--dry-run", "run", "engine", "status")
    assert ".venv/bin/cockpit jobs -o json" in make("--dry-run", "run", "ARGS=jobs -o json")


def test_a_second_setup_does_nothing(tmp_path: Path):
    project = tmp_path / "a project"
    for folder in ("tools", ".venv/bin"):
        (project / folder).mkdir(parents=True)
    (project / "pyproject.toml").touch()
    setup = project / "tools" / "setup"
    setup.write_bytes((CHECKOUT / "tools" / "setup").read_bytes())
    setup.chmod(0o755)
    (project / ".venv/bin/python").symlink_to("/bin/true")
    fingerprint = subprocess.run(["cksum"], input="", capture_output=True, text=True, check=True).stdout
    (project / ".venv/.ready").write_text(f"{project}\n{fingerprint}")
    run = subprocess.run([setup], capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert "installing" not in run.stderr
