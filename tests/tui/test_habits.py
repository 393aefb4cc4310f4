"""Keys that fingers know from elsewhere: a sort dialog, refresh, standing still, the record, other clusters."""

from __future__ import annotations

import pytest

from cockpit.tui.widgets.lines import LineView
from tests.tui.driver import column
from tests.tui.lab import a_lab, job, the_lab


@pytest.mark.req("UI-20")
async def test_the_sort_dialog_sorts_by_any_column_and_the_same_again_reverses() -> None:
    async with the_lab(size=(160, 40)) as lab:
        cockpit = lab.cockpit
        await cockpit.press("S").sees("Sort by", "How long it waited")
        screen = await cockpit.press("j", "Enter").misses("Sort by").sees("by name ▲")
        names = column(screen, "NAME")[:7]
        assert names == sorted(names)
        screen = await cockpit.press("S", "Enter").sees("by name ▼")
        assert column(screen, "NAME")[:7] == sorted(names, reverse=True)
        await cockpit.press("S", "Esc").sees("by name ▼")


@pytest.mark.req("UI-20")
async def test_updates_are_paused_until_resumed() -> None:
    async with a_lab(job("short", "sleep 120"), pace=None, badge=lambda: "") as lab:
        cockpit = lab.cockpit
        await cockpit.sees("● running").press("F6").sees("paused").lives(300).sees("● running")
        await cockpit.press("F6").misses("paused").sees("✓ succeeded").misses("● running")


async def test_refreshing_asks_at_once_and_draws_everything() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("Ctrl-r").sees("train").press("F5").sees("train")


@pytest.mark.req("UI-03", "UI-20")
async def test_the_record_an_earlier_log_and_folded_lines_are_a_key_away() -> None:
    async with a_lab(job("long", f"echo {'x' * 300}")) as lab:
        cockpit = lab.cockpit
        await cockpit.press("y").sees('"name": "long"').press("p").sees("There is no earlier attempt", "stdout")
        await cockpit.press("y").press("w")
        body = cockpit.app.screen.query_one(LineView)
        folded = body.virtual_size.height
        await cockpit.press("w")
        assert body.virtual_size.height < folded


async def test_attaching_shows_what_to_do_instead() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("a").sees("reads from no terminal", "s opens a shell")


@pytest.mark.req("UI-20")
async def test_another_cluster_is_opened_after_the_cockpit_has_closed() -> None:
    clusters = {"local": "your own engine", "lab": "made up"}
    async with the_lab(clusters=clusters, cluster="lab") as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").type("ctx nowhere").press("Enter").sees("There is no cluster nowhere")
        await cockpit.press(":").type("ctx").press("Enter").sees("Clusters", "your own engine").press("k", "Enter")
        assert cockpit.player.over
        assert cockpit.app.next_cluster == "local"


@pytest.mark.req("UI-24")
async def test_first_messages_are_not_cut_on_a_small_screen() -> None:
    async with a_lab(size=(80, 24)) as lab:
        assert "…" not in await lab.cockpit.press("4").sees("no limits apply.")
        await lab.cockpit.press("8", "?").sees("Nothing is filtered;")


@pytest.mark.req("UI-20", "UI-50")
async def test_a_demo_opens_no_other_demo_and_says_why() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press(":").type("demo").press("Enter").sees("This is the demo.")
