"""docs/views.md names keys and pictures that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.tui.actions.all import ACTIONS
from cockpit.tui.keymap import MOVING, key_name, key_of
from cockpit.tui.screens.form import FormScreen
from cockpit.tui.widgets.log_view import LogView
from cockpit.tui.widgets.terminal import MENU_KEY, SCROLL_KEYS

IN_FORM = {key for binding in FormScreen.BINDINGS for key in binding.key.split(",")} | {"tab", "shift+tab"}
IN_LOG = {key for keys, *_ in LogView.BINDINGS for key in keys.split(",")}
IN_PANE = {MENU_KEY, *SCROLL_KEYS}
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/views.md").read_text()
PLAYED = {
    name
    for script in (ROOT / "fixtures/plays").glob("*.play")
    for name in re.findall(r"^screenshot (\S+)", script.read_text(), re.MULTILINE)
}


def test_every_picture_is_taken_by_a_play() -> None:
    pictures = set(re.findall(r"\(pictures/(\S+)\.svg\)", PAGE))
    assert pictures
    assert pictures <= PLAYED


@pytest.mark.req("UI-20")
def test_the_keys_of_the_table_are_keys_of_actions() -> None:
    cells = [row.split("|")[1] for row in PAGE.splitlines() if row.startswith("| `")]
    commands = {":4711", ":ctx", ":lab", ":weights age=5000"}
    named = {key for cell in cells for key in re.findall(r"`([^`]+)`", cell)} - commands
    keys = {key for action in ACTIONS for key in action.keys} | MOVING | IN_FORM | IN_LOG | IN_PANE
    assert {key for key in named if key_of(key) not in keys} == set()
    assert {"Enter", "x"} <= named <= {key_name(key) for key in keys}
