"""Dialogs close once, and close nothing else."""

from __future__ import annotations

import asyncio

import pytest
from textual import events

from cockpit.tui.app import defect_text
from cockpit.tui.opening import CockpitApp
from cockpit.tui.screens.action_palette import ActionPalette
from cockpit.tui.screens.main import MainScreen
from cockpit.tui.widgets.entry import SafeInput
from tests.tui.lab import the_lab


def mouse(kind: type[events.MouseEvent], x: int, y: int) -> events.MouseEvent:
    return kind(None, x, y, 0, 0, 1, shift=False, meta=False, ctrl=False, screen_x=x, screen_y=y)


def click(app: CockpitApp, x: int, y: int) -> None:
    """As the terminal's driver reports it: nothing waits until it has been dealt with."""
    for kind in (events.MouseDown, events.MouseUp):
        app.post_message(mouse(kind, x, y))


@pytest.mark.req("UI-26", "UI-30")
async def test_two_clicks_beside_the_palette_close_the_palette_alone() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("ctrl+p").sees("the name of an action")
        for _ in range(3):
            click(lab.cockpit.app, 2, 2)
        await lab.cockpit.misses("the name of an action").sees("train")
        assert isinstance(lab.cockpit.app.screen, MainScreen)
        await lab.cockpit.press("ctrl+p").sees("the name of an action").press("Esc").misses("Search for commands")


@pytest.mark.req("UI-20", "UI-26")
@pytest.mark.parametrize(("keys", "title"), [("x", "Stop job 1"), ("?", "Keys"), ("n", "New job")])
async def test_a_dialog_that_is_closed_twice_closes_no_other_screen(keys: str, title: str) -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("Enter").sees("Why")
        page = lab.cockpit.app.screen
        await lab.cockpit.press(keys).sees(title)
        dialog = lab.cockpit.app.screen
        for _ in range(2):
            dialog.dismiss(None)
        await lab.cockpit.misses(title)
        assert lab.cockpit.app.screen is page


@pytest.mark.req("UI-20")
async def test_a_dialog_that_closes_below_others_closes_them_too() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("n").sees("New job")
        form = lab.cockpit.app.screen
        await lab.cockpit.press("ctrl+p").sees("the name of an action")
        form.dismiss(None)
        await lab.cockpit.misses("New job", "the name of an action")
        assert isinstance(lab.cockpit.app.screen, MainScreen)


@pytest.mark.req("UI-20", "UI-26", "TR-10")
@pytest.mark.parametrize("action", ["cancel", "help", "new", "open", "sort", "priority"])
async def test_a_screen_may_be_closed_before_its_widgets_are_there(action: str) -> None:
    async with the_lab() as lab:
        app, main = lab.cockpit.app, lab.cockpit.app.screen
        await lab.cockpit.press("G").sees("asks for")
        app.dispatcher.perform(action)
        for _ in range(1000):  # until the task that opens it has run
            if app.screen is not main:
                break
            await asyncio.sleep(0)
        assert app.screen is not main
        app.screen.dismiss(None)
        await lab.cockpit.press("g").sees("train")
        assert app.screen is main
        assert not app.failed


@pytest.mark.req("UI-20", "UI-26")
async def test_tasks_start_after_the_step_that_makes_them() -> None:
    """From Python 3.12 on Textual makes the event loop start tasks at once, and a page had no widgets."""
    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, coroutine, **options: asyncio.Task(coroutine, loop=loop, **options))
    async with the_lab():
        assert loop.get_task_factory() is None


@pytest.mark.req("TR-05", "TR-10")
def test_a_defect_is_reported_without_values_and_escaped() -> None:
    token = "t0ken-of-somebody"

    def failing(secret: str) -> None:
        raise ValueError(f"no \x1b]52;c;aGk=\x07 of {len(secret)} letters")

    with pytest.raises(ValueError, match="letters") as raised:
        failing(token)
    text = defect_text(raised.value)
    assert "ValueError: no \\x1b]52" in text
    assert "Jobs are not affected" in text
    assert token not in text
    assert "\x1b" not in text


@pytest.mark.req("UI-03", "UI-26")
@pytest.mark.parametrize("action", ["back", "times", "wrap", "search", "next_tab", "stream", "replica", "help"])
async def test_input_while_a_page_opens_waits_for_the_page(action: str) -> None:
    async with the_lab() as lab:
        lab.cockpit.app.dispatcher.perform("open")
        lab.cockpit.app.dispatcher.perform(action)
        await lab.cockpit.press("Esc", "Esc").sees("train")
        assert not lab.cockpit.app.failed


@pytest.mark.req("UI-26", "UI-08")
async def test_a_click_on_a_removed_but_still_drawn_widget_has_no_effect() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("n").sees("New job")
        app = lab.cockpit.app
        label = app.screen.query("FieldRow Label").first()
        place = label.region.offset
        with app.batch_update():  # nothing is drawn anew
            await label.remove()
            for kind in (events.MouseDown, events.MouseMove, events.MouseUp):
                await app.on_event(mouse(kind, *place))
        await lab.cockpit.sees("New job")
        assert not app.failed


@pytest.mark.req("UI-26", "UI-30")
async def test_text_typed_into_the_palette_is_not_searched_after_it_is_closed() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("ctrl+p").sees("the name of an action")
        palette = lab.cockpit.app.screen
        assert isinstance(palette, ActionPalette)
        await palette.dismiss(None)
        palette._typed(SafeInput.Changed(SafeInput(), "theme"))  # as a key that was under way does
        await lab.cockpit.misses("the name of an action").sees("train")
        assert not lab.cockpit.app.failed
