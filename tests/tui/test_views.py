"""Every view of the main screen, by its declaration: what it shows can be opened, filtered and read about."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.present.filters import compile_filter
from cockpit.tui.actions.all import BY_ID
from cockpit.tui.screens.main import VIEW_NAMES
from cockpit.tui.views.all import VIEWS
from cockpit.tui.views.view import View
from tests.tui.lab import the_lab

DOCS = (Path(__file__).parents[2] / "docs/views.md").read_text()
each_view = pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.id)
with_action = pytest.mark.parametrize(
    "view", [view for view in VIEWS.values() if view.action], ids=lambda view: view.action
)


@each_view
def test_enter_performs_an_action_of_the_view(view: View) -> None:
    assert view.opens in BY_ID
    assert view.id in BY_ID[view.opens].views


@each_view
def test_the_hint_is_a_filter_of_the_view(view: View) -> None:
    compile_filter(view.hint, view.table)


def test_every_view_without_an_action_is_a_tab_of_one_that_has_one() -> None:
    titles = {view.title for view in VIEWS.values() if view.action}
    assert {view.title for view in VIEWS.values()} == titles
    assert [key for key, _ in VIEW_NAMES] == [str(number + 1) for number in range(len(VIEW_NAMES))]


@each_view
def test_the_page_about_the_views_has_a_section_on_it(view: View) -> None:
    assert f"\n## {view.title}\n" in DOCS


@with_action
@pytest.mark.req("UI-20")
async def test_its_key_shows_the_view_with_a_panel_and_help(view: View) -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press(view.key).finds(lambda _: cockpit.app.main_screen.tables.view is view, f"shows {view.id}")
        await cockpit.press("question_mark").sees(f"Keys in {view.help_title or view.id}").press("escape")
        await cockpit.press("/").sees(view.hint)
    assert not cockpit.app.failed
