"""Tells a story (`python -m tests.e2e.STORY FOLDER`) in a mount namespace of its own: there this machine can be ill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def answer_of(story: str, folder: Path, *words: str) -> dict[str, Any]:
    """What the story printed, as JSON. Only root can tell it."""
    if os.geteuid() != 0:
        pytest.skip("only root can make this machine ill")
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-m", f"tests.e2e.{story}", str(folder), *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))
