"""The help page: columns on wide screens, and its search."""

from __future__ import annotations

import pytest

from cockpit.present.spans import line_width, plain
from cockpit.tui.action import Group
from cockpit.tui.parts import HelpEntry
from cockpit.tui.screens.help import help_lines
from tests.tui.lab import the_lab

ENTRIES = [
    HelpEntry((f"k{n}",), f"name {n}", f"Do thing {n}", group, "") for n in range(12) for group in list(Group)[:3]
]


@pytest.mark.req("UI-30", "UI-20")
@pytest.mark.parametrize(("width", "columns"), [(72, 1), (109, 2), (186, 3)])
def test_a_wide_page_has_columns_and_every_entry_once(width: int, columns: int) -> None:
    lines = help_lines(ENTRIES, "jobs", width)
    text = "".join(f"{plain(each)}\n" for each in lines)
    assert all(line_width(each) <= width for each in lines)
    assert all(text.count(f"Do thing {n}\n") + text.count(f"Do thing {n} ") == 3 for n in range(12))
    assert max(plain(each).count("name ") for each in lines) == columns
    # Each group is in one column, under its title.
    assert all(text.count(str(group)) == 1 for group in list(Group)[1:3])


@pytest.mark.req("UI-30")
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_the_page_is_searched_as_one_types(size: tuple[int, int]) -> None:
    async with the_lab(size=size) as lab:
        cockpit = lab.cockpit
        await cockpit.press("?").sees("Keys in the list of jobs", "/ searches it").press("/").type("time lim")
        await cockpit.sees("Change the time limit of jobs").misses("Show what every key does")
        await cockpit.press("Ctrl-u").type("zzz").sees("Nothing here has these words.")
        # The first Esc ends the search, the second closes the page.
        await cockpit.press("Esc").sees("Show what every key does").press("Esc").misses("Keys in the list of jobs")


@pytest.mark.req("UI-30", "UI-24")
async def test_columns_follow_the_width_of_the_screen() -> None:
    async with the_lab(size=(160, 50)) as lab:
        cockpit = lab.cockpit

        def side_by_side(screen: str) -> bool:
            return any("Submit a new job" in row and "Show" in row for row in screen.splitlines())

        await cockpit.press("?").finds(side_by_side, "two columns")
        await cockpit.resize(80, 40)
        await cockpit.finds(lambda screen: "Keys in" in screen and not side_by_side(screen), "one column")


@pytest.mark.req("UI-30")
def test_a_key_that_cannot_be_used_keeps_its_meaning_and_says_why() -> None:
    refused = HelpEntry(("e",), "edit", "Change a job", "jobs", "Job 1 is running: this is for queued jobs.")
    text = "\n".join(map(plain, help_lines([refused], "jobs", 100)))
    assert "  e  edit  Change a job (not now: this is for queued jobs)" in text
