"""The pages for people who read the code name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/code.md", "CONTRIBUTING.md"])
def test_every_named_file_exists(page: str) -> None:
    named = set(re.findall(r"`([a-z_/]+(?:\.py|/))`", (ROOT / page).read_text()))
    assert named
    assert not [each for each in sorted(named) if not ((ROOT / "cockpit" / each).exists() or (ROOT / each).exists())]
