"""What a person sees and looks for in the list of jobs, story by story, on a small cluster in its own time."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from cockpit.tui.widgets.table import CURSOR_SIGN, MARK_SIGN
from tests.tui.driver import column, under_cursor
from tests.tui.lab import ALICE, a_lab, job, the_lab

NAMES = ["train", "broken", "done", "tune", "wide", "eval", "训练"]
MANY = tuple(job(f"job-{number}", f"sleep {6000 - number}") for number in range(60))


def names(screen: str) -> list[str]:
    return [name for name in column(screen, "NAME") if name in NAMES]


@pytest.mark.req("UI-01")
async def test_every_job_shows_its_state_and_the_header_the_cluster_figures() -> None:
    async with the_lab() as lab:
        screen = await lab.cockpit.sees("3 queued", "2 running", "1 held", "8/8", "alice")
        assert names(screen) == NAMES
        for name, state in (
            ("train", "● running"),
            ("broken", "✗ error"),
            ("done", "✓ succeeded"),
            ("wide", "◌ queued"),
        ):
            assert any(name in line and state in line for line in screen.splitlines()), (name, screen)


@pytest.mark.req("UI-02")
async def test_the_panel_describes_the_job_under_the_cursor() -> None:
    async with the_lab() as lab:
        await (
            lab.cockpit.sees("1 train  runs on n0")
            .press("j")
            .sees("2 broken  ended with exit 3.", "held until", "s open shell")
        )
        await lab.cockpit.press("G", "k").sees("6 eval  waits for", "in the queue", "asks for 1 node")


@pytest.mark.req("UI-21", "UI-22")
async def test_the_filter_applies_while_typing_and_receives_all_keys() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await (
            cockpit.press("/")
            .type("tu")
            .misses("broken")
            .sees("tune")
            .press("Backspace")
            .sees("wide")
            .type("un")
            .misses("wide")
            .sees("tune")
        )
        screen = await cockpit.press("Enter").sees("tune")
        assert names(screen) == ["tune"]
        assert names(await cockpit.press("Esc").sees("broken")) == NAMES
        await cockpit.press("/").type("qxXnH").misses("train").press("Esc").sees("train").misses("Stop job")
        assert not cockpit.player.over


@pytest.mark.req("UI-22")
async def test_the_filter_accepts_columns_and_shows_its_errors() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        screen = await cockpit.press("/").type("state:queued user:bob").press("Enter").misses("train")
        assert names(screen) == ["eval", "训练"]
        await cockpit.press("Esc", "/").type("!state:queued cards>=4").misses("wide").sees("train", "tune")
        await cockpit.press("Esc", "/").type("colour:red").sees("colour")
        assert names(await cockpit.press("Esc").sees("broken")) == NAMES


@pytest.mark.req("UI-22")
async def test_a_filter_without_matches_shows_how_to_continue() -> None:
    async with the_lab() as lab:
        await (
            lab.cockpit.press("/").type("nobody").press("Enter").sees("No job matches", "Esc").press("Esc").sees("tune")
        )


@pytest.mark.req("UI-01")
async def test_the_list_shows_own_jobs_or_all_jobs() -> None:
    async with the_lab() as lab:
        assert names(await lab.cockpit.press("m").misses("eval")) == NAMES[:5]
        assert names(await lab.cockpit.press("m").sees("eval")) == NAMES


@pytest.mark.req("UI-23")
async def test_sorting_by_the_columns_left_and_right_and_backwards() -> None:
    async with the_lab(usual_order=True) as lab:
        cockpit = lab.cockpit
        await cockpit.stands_on("broken")
        ids = await cockpit.press(">").stands_on("broken")
        assert names(ids) == NAMES
        assert names(await cockpit.press(">").stands_on("broken")) == sorted(NAMES)
        assert names(await cockpit.press("=").stands_on("broken")) == sorted(NAMES, reverse=True)
        assert names(await cockpit.press("<").stands_on("broken")) == NAMES


@pytest.mark.req("UI-23")
async def test_cursor_marks_and_scroll_follow_their_jobs_while_others_are_added_and_removed() -> None:
    async with a_lab(*MANY[:40]) as lab:
        cockpit = lab.cockpit
        screen = await cockpit.sees("job-0").press("G", "Space", "k").stands_on("job-38")
        await lab.backend.cancel(39)
        line = screen.splitlines().index(under_cursor(screen))
        for spec in MANY[40:]:
            await lab.backend.submit([spec])
        screen = await cockpit.sees("59 running").stands_on("job-38")
        assert screen.splitlines().index(under_cursor(screen)) == line
        marked = next(each for each in screen.splitlines() if "job-39 " in each)
        assert marked.startswith(MARK_SIGN)
        for ended in range(1, 6):
            await lab.backend.cancel(ended)
        await cockpit.sees("54 running")
        for ended in range(1, 6):
            await lab.backend.delete(ended)
        screen = await cockpit.stands_on("job-38")
        assert screen.splitlines().index(under_cursor(screen)) == line
        screen = await cockpit.press(">", ">", "=").stands_on("job-38")
        assert any(each.startswith(MARK_SIGN) and "job-39 " in each for each in screen.splitlines())


@pytest.mark.req("UI-23")
async def test_when_the_job_under_the_cursor_is_removed_the_cursor_is_on_its_neighbour() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("j", "j").stands_on("done")
        await lab.backend.delete(3)
        await lab.cockpit.misses("done").stands_on("tune")


@pytest.mark.req("UI-23")
async def test_marks_and_ranges_are_counted_and_esc_clears_them() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        screen = await cockpit.press("g", "Space").stands_on("broken").press("j", "j", "V")
        assert sum(line.startswith((MARK_SIGN, CURSOR_SIGN)) for line in screen.splitlines()) == 4
        await cockpit.press("Esc", "g", "Space", "x").sees("Stop job 1").press("Esc")
        await cockpit.press("Esc", "G", "Space", "k", "k", "V", "x").sees("Stop 3 jobs").press("n", "Esc")
        screen = await cockpit.misses("Stop")
        assert MARK_SIGN not in screen


@pytest.mark.req("UI-24")
async def test_a_small_terminal_shows_less_and_a_resize_keeps_the_cursor_row() -> None:
    async with the_lab(size=(80, 24)) as lab:
        cockpit = lab.cockpit
        screen = await cockpit.press("j", "j", "j", "j").stands_on("wide").sees("waits for")
        assert max(map(cell_len, screen.splitlines())) <= 80
        assert "? help" in screen
        screen = await cockpit.resize(200, 60).stands_on("wide").sees("USER")
        assert len(screen.splitlines()) == 60
        assert "USER" in await cockpit.resize(120, 40).stands_on("wide")
        assert "USER" not in await cockpit.resize(80, 24).stands_on("wide")
        await cockpit.resize(40, 10).stands_on("wide")


@pytest.mark.req("UI-24")
async def test_wide_characters_keep_the_columns_aligned() -> None:
    async with the_lab() as lab:
        screen = await lab.cockpit.sees("训练")
        places = {cell_len(line[: line.index("bob")]) for line in screen.splitlines() if "bob" in line}
        assert len(places) == 1


@pytest.mark.req("UI-01")
async def test_an_empty_cluster_says_what_to_do_first() -> None:
    async with a_lab() as lab:
        await lab.cockpit.sees("No jobs yet", "submit")


@pytest.mark.req("UI-20")
async def test_esc_returns_from_every_view_and_never_quits() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        for way in (("Enter",), ("?",), ("x",), ("/",), (":",), ("Space",), ("l",), ("2",), ("Ctrl-p",)):
            await cockpit.press(*way).press("Esc", "Esc", "Esc").press("1").sees("broken", "wide")
            assert not cockpit.player.over, way
        await cockpit.press("q")
        assert cockpit.player.over


@pytest.mark.req("UI-04")
async def test_the_nodes_show_their_usage_and_their_jobs() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("2").sees("n01", "n02", "4/4").stands_on("n01").press("j").stands_on("n02")
        await lab.cockpit.press("1").stands_on("train")


async def test_a_job_submitted_elsewhere_appears_by_itself() -> None:
    async with a_lab(*ALICE[:1]) as lab:
        await lab.cockpit.sees("train")
        await lab.backend.submit([job("from-elsewhere")])
        await lab.cockpit.sees("from-elsewhere")
