"""A few whole screens as they were when somebody last looked at them and found them good.

`SNAPSHOTS=write make test TESTS=tests/tui/test_snapshots.py` takes them anew; look at the difference before it is kept.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.tui.picture import screen_svg
from tests.tui.lab import the_lab

FOLDER = Path(__file__).with_name("snapshots")
SCREENS = {
    "jobs.svg": (("G", "k", "k"), "starts about", "~22:05", "ends about 22:05"),
    "job.txt": (("j", "Enter"), "Why"),
    "nodes.txt": (("2",), "n02"),
    "cards.txt": (("3",), "n02"),
}
"""The keys that lead there, and what comes last on it."""


@pytest.mark.parametrize("name", SCREENS)
async def test_the_screen_is_as_it_was(name: str) -> None:
    async with the_lab() as lab:
        lab.demo.pace.pause()
        keys, *last = SCREENS[name]
        shown = await lab.cockpit.press(*keys).sees(*last) + "\n"
        if name.endswith(".svg"):
            shown = screen_svg(lab.cockpit.app)
    kept = FOLDER / name
    if os.environ.get("SNAPSHOTS") == "write":
        kept.write_text(shown)
    assert shown == kept.read_text(), f"{name} looks different; see how this test takes it anew"
