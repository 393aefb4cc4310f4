"""Debian's PyTorch, and whether its launchers can run here."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

SYSTEM_PYTHON = "/usr/bin/python3"
_STORE = "from torch.distributed import TCPStore; TCPStore('localhost', 0, 1, True)"


@cache
def has_torch() -> bool:
    find = [SYSTEM_PYTHON, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    return Path(SYSTEM_PYTHON).exists() and subprocess.run(find, check=False).returncode == 0


needs_torch = pytest.mark.skipif(not has_torch(), reason="Debian's python3-torch is not installed")


@cache
def _complaint() -> str:
    run = subprocess.run([SYSTEM_PYTHON, "-c", _STORE], capture_output=True, text=True, check=False)
    return run.stderr.strip().splitlines()[-1] if run.returncode else ""


def require_launcher() -> None:
    """Skip the test where PyTorch cannot make the store of its launchers.

    Debian 13's PyTorch 2.6 is built without libuv, and its torchrun asks for it whatever the environment says.
    """
    if complaint := _complaint():
        pytest.skip(f"PyTorch's launchers cannot run here: {complaint}")
