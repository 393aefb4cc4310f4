"""A job's page, its logs, the help, the palette and the command line, and keys that a person chose."""

from __future__ import annotations

import pytest

from cockpit.errors import CockpitError
from cockpit.tui.keys import key_name
from tests.tui.lab import a_lab, job, the_lab


@pytest.mark.req("UI-03")
async def test_every_tab_of_a_jobs_page_and_back_to_the_same_row() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("j").stands_on("broken").press("Enter").sees("2 broken", "exit 3", "look inside")
        await cockpit.press("]").sees("stdout").press("]").sees("command", "bash -c").press("]").sees("n01")
        await cockpit.press("]").sees("submitted", "alice").press("]").sees('"id": 2,')
        await cockpit.press("]").sees("look inside").press("[").sees('"id": 2,')
        await cockpit.press("Esc").stands_on("broken")


@pytest.mark.req("UI-03")
async def test_logs_follow_while_the_job_prints_and_the_other_stream_is_a_key_away() -> None:
    async with a_lab(job("chatty", "sleep 3000")) as lab:
        cockpit = lab.cockpit
        lab.demo.pace.speed = 600
        screen = await cockpit.press("l").sees("reading /workspace/algorithm/config.yaml")
        before = screen.count("step")
        await cockpit.finds(lambda screen: screen.count("step") > before + 5, "more steps")
        await (
            cockpit.press("o")
            .sees("stderr")
            .misses("config.yaml")
            .press("o")
            .sees("config.yaml")
            .press("Esc")
            .sees("chatty")
        )


@pytest.mark.req("UI-03")
async def test_the_page_follows_its_job_to_the_end() -> None:
    async with a_lab(job("short", "sleep 120")) as lab:
        await (
            lab.cockpit.press("Enter").sees("● running").lives(30).sees("✓ succeeded").press("Esc").sees("✓ succeeded")
        )


@pytest.mark.req("UI-20")
async def test_jobs_are_acted_on_from_their_page() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("Enter", "x").sees("Stop job 1 train?").press("y").sees("■ stopped")


@pytest.mark.req("UI-20")
@pytest.mark.parametrize(("view", "way"), [("jobs", ()), ("nodes", ("2",)), ("job", ("Enter",))])
async def test_help_lists_every_key_of_the_view(view: str, way: tuple[str, ...]) -> None:
    async with the_lab(size=(120, 70)) as lab:
        screen = await lab.cockpit.press(*way, "?").sees("Keys")
        lines = screen.splitlines()
        for action in lab.cockpit.app.actions:
            for key in action.keys if view in action.views else ():
                assert any(key_name(key) in line and action.label in line for line in lines), (action.id, screen)
        await lab.cockpit.press("Esc").misses("Keys of")


@pytest.mark.req("UI-20")
async def test_keys_that_a_person_chose_work_and_are_shown_everywhere() -> None:
    async with the_lab(keys={"cancel": ("K",), "hold": ("Z",)}) as lab:
        cockpit = lab.cockpit
        screen = await cockpit.press("x").sees("K cancel").misses("Stop job")
        assert "x cancel" not in screen
        await (
            cockpit.press("K")
            .sees("Stop job 1")
            .press("Esc")
            .press("?")
            .finds(
                lambda screen: any(" K " in line and "cancel" in line for line in screen.splitlines()), "K in the help"
            )
        )


@pytest.mark.req("UI-20")
async def test_a_key_for_two_actions_and_an_unknown_action_are_refused() -> None:
    for keys, wrong in (({"cancel": ("n",)}, "cancel"), ({"explode": ("K",)}, "explode")):
        with pytest.raises(CockpitError, match=wrong):
            async with a_lab(keys=keys):
                pass


async def test_the_command_line_completes_with_tab_and_names_what_it_does_not_know() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").type("nodes").press("Tab", "Enter").stands_on("n01")
        await cockpit.press(":").type("jobs").press("Enter").stands_on("train")
        await cockpit.press(":").type("frobnicate").press("Enter").sees("frobnicate").stands_on("train")
        await cockpit.press(":").type("cancel").press("Enter").sees("Stop job 1").press("Esc")
        await cockpit.press(":").type("q").press("Enter")
        assert cockpit.player.over


async def test_the_palette_finds_actions_and_themes() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("Ctrl-p").type("nodes").sees("The nodes").press("Enter").stands_on("n01").press("1")
        await cockpit.press("Ctrl-p").type("theme light").press("Enter").sees("train")
        assert cockpit.app.role_theme().name == "light"


@pytest.mark.req("UI-50")
async def test_a_demos_time_stands_still_and_hurries() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await (
            cockpit.sees("DEMO 10×").press(")").sees("DEMO 60×").press("(").sees("DEMO 10×").press("F6").sees("paused")
        )
        await cockpit.press("F6").misses("paused")


async def test_copying_gives_the_ids_to_the_terminal() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("Space", "Space", "c").sees("copied 1 2")
        assert lab.cockpit.app.clipboard == "1 2"
