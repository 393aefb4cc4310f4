"""The same containers, made by an ordinary user's engine: root runs these files again as another user."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.environments import environment_for_everybody
from tests.runtime.containers.conftest import IS_ROOT

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[2]
LEAST = 50


@pytest.mark.real
@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user is running the tests already")
def test_the_container_tests_pass_for_an_ordinary_users_engine(ann):
    copy = Path(mkdtemp(prefix="cockpit-checkout-", dir="/tmp"))
    copy.chmod(0o755)
    try:
        for name in ("cockpit", "tests"):
            shutil.copytree(CHECKOUT / name, copy / name)
        shutil.copy(CHECKOUT / "pyproject.toml", copy)
        subprocess.run(["chown", "-R", ann, copy], check=True)  # what they compile they keep
        python = environment_for_everybody(
            copy / "venv", also=("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis")
        )
        run = subprocess.run(
            [
                *("runuser", "-u", ann, "--", "env", "-i", "PATH=/usr/bin:/bin", "HOME=/tmp"),
                *(python, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("tests/runtime/containers", "-m", "real", f"--basetemp=/tmp/{ann}"),
            ],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(copy)
        shutil.rmtree(f"/tmp/{ann}", ignore_errors=True)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) >= LEAST
