"""What was held, day by day: a person turns to it, adds it up otherwise, and goes on to the jobs."""

from __future__ import annotations

import pytest

from tests.tui.lab import the_lab


@pytest.mark.req("UI-09")
async def test_card_hours_are_charted_by_the_chosen_grouping() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("h").sees("-hours in the last 7 days, by account", "BY DAY", "█")
        await cockpit.press("b").sees("by user", "■ alice", "■ bob").press("d").sees("last 30 days, by user")
        await cockpit.press("b", "d", "b", "b", "b", "d").sees("last 30 days, by user")
        await cockpit.press("/").type("name:alice").press("Enter").sees("■ alice").misses("■ bob")
        await cockpit.sees("alice  held", "on average; most on").press("Enter").sees('/ user:"alice"')


@pytest.mark.req("UI-09", "UI-20")
async def test_the_spending_view_is_beside_the_account_tree_and_the_qos() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("4", "[").sees("BY DAY")
        await lab.cockpit.press("[").sees("PREEMPTS").press("]").sees("BY DAY").press("]").misses("BY DAY")
        await lab.cockpit.press("h").sees("BY DAY").press("1", ":").type("card-hours").press("Enter").sees("BY DAY")


@pytest.mark.req("UI-09", "UI-20")
async def test_the_bottom_row_names_the_keys_of_the_spending_view() -> None:
    async with the_lab() as lab:
        screen = await lab.cockpit.press("h").sees("BY DAY")
        assert "d days" in screen.splitlines()[-1]


@pytest.mark.req("UI-09")
async def test_the_day_on_which_most_was_held_is_named_by_its_date() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("h").sees("BY DAY").press("b").sees("■ alice").press("b", "b")
        await lab.cockpit.sees("last 7 days", "on average; most on 3 Mar, 155.6; today so far")
