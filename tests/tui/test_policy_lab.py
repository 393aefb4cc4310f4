"""`:lab` shows the past under other rules, and says what it cannot do."""

from __future__ import annotations

import pytest

from tests.tui.lab import the_lab

pytestmark = pytest.mark.req("UI-16")


async def test_the_lab_shows_today_beside_the_changed_rules_and_closes() -> None:
    async with the_lab() as lab:
        await (
            lab.cockpit.press(":")
            .type("lab --backfill off")
            .press("Enter")
            .sees("under other rules", "backfill off, depth unlimited", "mean wait", "USER")
        )
        await lab.cockpit.press("Esc").misses("under other rules")


async def test_without_changes_it_says_how_to_name_some() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press(":").type("lab").press("Enter").sees("no change", "Name changes: :lab --weights")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("lab --nope", "unrecognized arguments"),
        ("lab --apply --weights age=1", "another cluster"),
        ("lab '", "a quote"),
    ],
)
async def test_words_that_it_does_not_take_are_refused(words: str, says: str) -> None:
    async with the_lab() as lab:
        await lab.cockpit.press(":").type(words).press("Enter").sees(says)
