"""Views that are made without bubblewrap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
CHECKOUT = Path(__file__).parents[3]


@pytest.mark.req("TR-03")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system that never answers")
def test_an_unresponsive_folder_ends_the_setup_of_the_mounts(tmp_path: Path) -> None:
    words = [*APART, sys.executable, "-m", "tests.runtime.containers.unanswered", str(tmp_path)]
    made = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert made.stderr == ""
    assert json.loads(made.stdout) == [-1, "the file server of a mounted folder does not answer"]
