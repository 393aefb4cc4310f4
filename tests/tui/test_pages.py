"""A job's page, its logs, the help, the palette and the command line, and keys that a person chose."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from cockpit.errors import CockpitError
from cockpit.model.asking import LogStream
from cockpit.tui.keymap import key_name
from cockpit.tui.screens.job import JobPage
from cockpit.tui.screens.node import NodePage
from cockpit.tui.views.priority import PRIORITY
from cockpit.tui.widgets.table import TitleLine
from tests.tui.lab import a_lab, job, the_lab
from tests.tui.logs import shows


@pytest.mark.req("UI-03")
async def test_every_tab_of_a_jobs_page_opens_and_closing_returns_to_the_same_row() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("j").stands_on("broken").press("Enter").sees("2 broken", "exit 3", "open shell")
        await cockpit.press("]").sees("waits no longer").press("]").sees("command", "bash -c")
        await (
            cockpit.press("]")
            .sees("n01", "COCKPIT_JOB_ID", "runs  bash -c 'exit 3'")
            .press("]")
            .sees("stderr at its error")
        )
        await cockpit.press("]").sees("submitted", "alice").press("]").sees("CPU-HOURS", "CARD-HOURS")
        await cockpit.press("]").sees("opens a shell in its container").press("]").sees('"id": 2,')
        await cockpit.press("]").sees("open shell").press("[").sees('"id": 2,')
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
async def test_the_wait_reasons_are_above_the_events_and_the_priority_is_itemized() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("G", "k", "k").stands_on("wide").press("H").sees("held by").press("H").misses("held by")
        await cockpit.press("Enter", "]").sees("place", "in order of submission")
        await cockpit.press("]", "]", "]", "]").sees("has waited for", "held by alice", "needs 2 nodes with 4 cards")


def at_the_last(screen: str) -> bool:
    """Whether the last match of a search for `step` is the present one."""
    return re.search(r"^ (\d+) of \1  step", screen, re.MULTILINE) is not None


@pytest.mark.req("UI-03")
async def test_a_text_is_searched_in_a_log_and_the_keys_go_to_it() -> None:
    async with a_lab(job("chatty", "sleep 30000"), size=(100, 14)) as lab:
        cockpit = lab.cockpit
        await cockpit.lives(60).press("l").sees("step")
        await cockpit.press("/").type("CONFIG.yaml").sees("1 of 1", "config.yaml").press("Enter").sees("1 of 1")
        await cockpit.press("/").press("Ctrl-u").type("no such line").sees("nowhere here").press("Esc")
        await cockpit.misses("nowhere").press("/").type("step").press("Enter").sees("of ")
        await cockpit.press("g", "/").type("step").press("Enter").sees("1 of ").press(">").sees("2 of ")
        await cockpit.press("<").sees(" 1 of ").press("<").finds(at_the_last, "the last match").press(">")
        await cockpit.finds(lambda screen: not at_the_last(screen), "the first match")
        await cockpit.press("Esc").misses(" before").sees("stdout", "? help").press("Esc").stands_on("chatty")


@pytest.mark.req("UI-14")
async def test_steps_before_the_first_match_is_found_are_taken_behind_it() -> None:
    async with a_lab(job("chatty", "sleep 30000")) as lab:
        shows(lab, {(0, LogStream.STDOUT): b"".join(b"Fault %d\n" % number for number in range(4))})
        cockpit = lab.cockpit
        await cockpit.press("l").sees("Fault 3").press("g", "/").type("fault").press("Enter").sees("1 of 4")
        page = cockpit.app.selection.job_page
        assert page is not None
        page._search("fault")
        # Nothing runs between these: the first match is not found yet.
        for step in (1, 1, -1, 1):
            page.find(step)
        await cockpit.sees("3 of 4")


@pytest.mark.req("UI-03")
async def test_the_keys_go_to_every_match_of_a_search_also_in_neighbouring_lines() -> None:
    async with a_lab(job("chatty", "sleep 30000")) as lab:
        shows(lab, {(0, LogStream.STDOUT): b"".join(b"Fault %d\n" % number for number in range(4))})
        cockpit = lab.cockpit
        await cockpit.press("l").sees("Fault 3").press("g", "/").type("fault").press("Enter").sees("1 of 4")
        for place in (2, 3, 4, 1):
            await cockpit.press(">").sees(f"{place} of 4")
        for place in (4, 3, 2, 1):
            await cockpit.press("<").sees(f"{place} of 4")


@pytest.mark.req("UI-03")
async def test_timestamps_are_shown_for_new_log_lines_and_not_for_earlier_ones() -> None:
    async with a_lab(job("chatty", "sleep 30000")) as lab:
        cockpit = lab.cockpit
        await cockpit.press("l").sees("config.yaml").press("t")
        stamp = re.compile(r"^ \d\d:\d\d:\d\d  .*step", re.MULTILINE)
        screen = await cockpit.finds(lambda screen: bool(stamp.search(screen)), "a time before a line")
        (old,) = (each for each in screen.splitlines() if "config.yaml" in each)
        assert old.startswith("           ")
        await cockpit.press("t").finds(lambda screen: not stamp.search(screen), "no times")


@pytest.mark.req("UI-03")
async def test_a_line_without_end_and_a_bar_are_readable_and_searched() -> None:
    log = b"head\n" + b"x" * 90_000 + b"needle\n" + b"".join(b"\r%3d%%|###" % n for n in range(100)) + b"\ntail\n"
    async with a_lab(job("chatty", "sleep 30000")) as lab:
        shows(lab, {(0, LogStream.STDOUT): log})
        screen = await lab.cockpit.press("l").sees("tail", "99%|###", "head")
        assert " 42%" not in screen
        assert len([each for each in screen.splitlines() if "xxx" in each]) == 1
        await lab.cockpit.press("w", "/").type("needle").sees("1 of 1").press("Enter", "G").sees("needle", "tail")


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
    async with the_lab(size=(120, 90)) as lab:
        screen = await lab.cockpit.press(*way, "?").sees("Keys")
        lines = screen.splitlines()
        for action in lab.cockpit.app.dispatcher.actions:
            for key in action.keys if view in action.views else ():
                assert any(key_name(key) in line and action.label in line for line in lines), (action.id, screen)
        await lab.cockpit.press("Esc").misses("Keys of")


@pytest.mark.req("UI-20")
async def test_user_defined_keys_work_and_are_shown_everywhere() -> None:
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
        await cockpit.press("Ctrl-p").type("nodes").sees("Show nodes").press("Enter").stands_on("n01").press("1")
        await cockpit.press("Ctrl-p").type("theme light").press("Enter").sees("train")
        assert cockpit.app.state.role_theme().name == "light"


async def test_the_palette_on_a_jobs_page_offers_the_actions_of_that_page() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("Enter").sees("Why").press("Ctrl-p").type("wrap").sees("Wrap long lines")


@pytest.mark.req("UI-50")
async def test_a_demos_time_is_paused_and_accelerated() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await (
            cockpit.sees("DEMO 10×").press(")").sees("DEMO 60×").press("(").sees("DEMO 10×").press("F6").sees("paused")
        )
        await cockpit.press("F6").misses("paused")


async def test_copying_sends_the_ids_to_the_terminal() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("Space", "Space", "c").sees("copied 1 2")
        assert lab.cockpit.app.clipboard == "1 2"


@pytest.mark.req("UI-03")
async def test_the_empty_log_of_an_ended_job_is_not_described_as_empty_so_far() -> None:
    async with a_lab(job("chatty", "sleep 30000")) as lab:
        shows(lab, {})
        screen = await lab.cockpit.press("l").sees("nothing on stdout")
        assert "yet" not in screen, "it has ended"


@pytest.mark.req("UI-03", "UI-24")
async def test_no_sentence_of_the_page_is_cut() -> None:
    async with a_lab(job("waits", "true", hold=True), size=(44, 24)) as lab:
        await lab.cockpit.press("Enter").sees("Why").press("[", "[")
        await lab.cockpit.sees("you can open a", "\n   shell once it runs.")


@pytest.mark.req("UI-30")
async def test_tab_cycles_through_all_completions_of_a_command() -> None:
    async with the_lab() as lab:
        cockpit, themes = lab.cockpit, list(lab.cockpit.app.options.themes)
        await cockpit.press(":").type("theme ").press("Tab").sees(f"theme {themes[0]}")
        for name in (*themes[1:], themes[0]):
            await cockpit.press("Tab").sees(f"theme {name}")
        await cockpit.press("shift+tab").sees(f"theme {themes[-1]}").press("Enter").sees("train")
        assert lab.cockpit.app.theme == themes[-1]


@pytest.mark.req("UI-30", "UI-22")
async def test_an_impossible_filter_value_is_reported_with_the_nearest_one() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("/").type("state:faild").sees("state is never faild; did you mean failed?")
        await lab.cockpit.press("Ctrl-u").type("state:failed").press("Enter").sees("broken").misses("never")


@pytest.mark.req("UI-30")
async def test_a_job_is_found_by_its_name() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press(":").type("wide").press("Enter").stands_on("wide")


@pytest.mark.req("UI-03", "UI-26")
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("keys", "question"), [(("Enter",), "job"), (("2", "Enter"), "nodes")])
async def test_an_answer_that_arrives_while_the_cockpit_closes_is_harmless(
    monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], question: str, *, fails: bool
) -> None:
    """A page's widgets go before the page and what it does beside the screen."""
    asked, came = asyncio.Event(), []
    async with the_lab() as lab:
        app = lab.cockpit.app
        await lab.cockpit.press(*keys).sees("n01")
        page, answer = app.screen, getattr(app.backend, question)
        assert isinstance(page, JobPage | NodePage)

        async def answer_late(*args: Any) -> Any:
            asked.set()
            while page.query("#head"):  # noqa: ASYNC110 - nothing tells when a widget has gone
                await asyncio.sleep(0)
            came.append(question)
            if fails:
                raise CockpitError("no answer")
            return await answer(*args)

        monkeypatch.setattr(app.backend, question, answer_late)
        page.run_worker(page.catch_up())
        await asyncio.wait_for(asked.wait(), timeout=100)
    assert came
    assert not app.failed


@pytest.mark.req("UI-26")
async def test_priorities_that_arrive_while_the_cockpit_closes_are_harmless() -> None:
    drawn = []
    async with the_lab() as lab:
        app = lab.cockpit.app

        async def draw_late() -> None:
            while app.main_screen.query(TitleLine):  # noqa: ASYNC110 - nothing tells when a widget has gone
                await asyncio.sleep(0)
            app.main_screen.redraw_rows(PRIORITY.id)
            drawn.append(PRIORITY.id)

        app.main_screen.run_worker(draw_late())
    assert drawn
    assert not app.failed
