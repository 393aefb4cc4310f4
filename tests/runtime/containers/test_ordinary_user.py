"""The same containers, made by an ordinary user's engine: root runs these files again as somebody else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import msgspec
import pytest

from tests.runtime.containers.conftest import IS_ROOT

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[2]
LEAST = 50


def python_for(user: str) -> str:
    """An interpreter of this version that this user may execute: the tests' own may lie in root's home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if (
            subprocess.run(
                ["runuser", "-u", user, "--", candidate, "-c", ""], check=False, capture_output=True
            ).returncode
            == 0
        ):
            return candidate
    pytest.skip(f"no {version} that an ordinary user may run")


@pytest.mark.real
@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user is running the tests already")
def test_everything_holds_for_an_ordinary_users_engine(ann):
    copy = Path(mkdtemp(prefix="cockpit-checkout-", dir="/tmp"))
    copy.chmod(0o755)
    try:
        for name in ("cockpit", "tests"):
            shutil.copytree(CHECKOUT / name, copy / name)
        shutil.copy(CHECKOUT / "pyproject.toml", copy)
        subprocess.run(["chown", "-R", ann, copy], check=True)  # what they compile they keep
        packages = Path(msgspec.__file__).parents[1]
        run = subprocess.run(
            [
                *("runuser", "-u", ann, "--", "env", "-i", f"PYTHONPATH={packages}", "PATH=/usr/bin:/bin", "HOME=/tmp"),
                *(python_for(ann), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
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
