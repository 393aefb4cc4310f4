"""The folder of published logs, which are not part of this project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "COCKPIT_TRACES"
DEFAULT = Path(__file__).parents[2] / "../shared/traces"


def trace(name: str) -> Path:
    """A log of that name; skips the test where it is not on this machine."""
    folder = Path(os.environ.get(VARIABLE) or DEFAULT).resolve()
    if not (folder / name).is_file():
        pytest.skip(f"no {name} in {folder}; set {VARIABLE} to the folder of published logs")
    return folder / name
