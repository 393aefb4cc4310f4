"""The Priority view, story by story: who comes first, by what, and what other weights would make of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cockpit.backends.inprocess import InProcessBackend
from cockpit.engine.access import Actor
from cockpit.model.cluster import Cluster
from cockpit.model.events import ClusterConfigured
from cockpit.model.priority import WeightChanges
from cockpit.runtime.host import Act
from tests.tui.driver import Cockpit, column, under_cursor
from tests.tui.lab import Lab, a_lab, job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cockpit.model.job import Submitter

WEIGHTS = WeightChanges(age=100, job_size=5000, tres={"gres/gpu": 8000})
RUNNING = (job("train", cards=4), job("tune", cards=4))
WAITING = (job("nice", cards=1, nice=100), job("large", cards=4), job("small", cards=1))
BOB = (job("wide", cards=1, nodes=2),)


@asynccontextmanager
async def a_queue(weights: WeightChanges | None = WEIGHTS, **outside: Any) -> AsyncIterator[Lab]:
    """Two jobs run; large, wide, small and nice wait in this order by these weights."""
    async with a_lab(*RUNNING, *WAITING, bobs=BOB, **outside) as lab:
        await lab.cockpit.sees("train")
        if weights is not None:
            await lab.backend.set_weights(weights)
        yield lab


def names(screen: str) -> list[str]:
    known = {"nice", "large", "small", "wide"}
    return [name for name in column(screen, "NAME") if name in known]


async def ordered(cockpit: Cockpit, *wanted: str) -> str:
    return await cockpit.finds(lambda screen: "NAME" in screen and names(screen) == list(wanted), f"order {wanted}")


@pytest.mark.req("UI-07")
async def test_the_queue_in_its_order_with_a_bar_and_a_column_for_each_factor() -> None:
    async with a_queue() as lab:
        screen = await ordered(lab.cockpit.press("5"), "large", "wide", "small", "nice")
        assert all(title in screen for title in ("PLACE", "TOTAL", "AGE", "SIZE", "TRES"))
        assert "▆ size 5 000" in screen
        bars = [line.count("▆") for line in screen.splitlines() if "▆▆" in line]
        assert bars == sorted(bars, reverse=True)


@pytest.mark.req("UI-07")
async def test_the_panel_shows_the_job_ahead_and_the_deciding_factor() -> None:
    async with a_queue() as lab:
        await lab.cockpit.press("5").sees("at place 1 of 4").sees("ahead of 6 wide (bob)", "resources +")
        await lab.cockpit.press("G").sees("3 nice  is at place 4 of 4", "behind  5 small (alice) by 100: nice −100")


@pytest.mark.req("UI-07")
async def test_figures_are_contribution_then_raw_then_weight() -> None:
    async with a_queue() as lab:
        await lab.cockpit.press("5").sees("4 000").press("v").sees("raw factors", "0.500").press("v").sees("8 000")
        await lab.cockpit.press("v").misses("raw factors")


@pytest.mark.req("UI-07", "UI-22")
async def test_sorted_by_any_column_and_filtered() -> None:
    async with a_queue() as lab:
        cockpit = lab.cockpit.press("5")
        await ordered(cockpit, "large", "wide", "small", "nice")
        await ordered(cockpit.press(">"), "nice", "large", "small", "wide")
        await ordered(cockpit.press("="), "wide", "small", "large", "nice")
        await ordered(cockpit.press("/").type("user:bob").press("Enter"), "wide")
        await ordered(cockpit.press("Esc", "/").type("tres>=3000").press("Enter"), "large")
        await cockpit.press("Esc", "/").type("colour:red").sees("priority have no column colour").press("Esc")
        await ordered(cockpit.press("S").sees("Sort by").press("g", "Enter"), "large", "wide", "small", "nice")


@pytest.mark.req("UI-07")
async def test_weights_are_typed_and_the_new_order_is_shown_beside_the_old_one() -> None:
    async with a_queue() as lab:
        cockpit = lab.cockpit.press("5")
        await ordered(cockpit, "large", "wide", "small", "nice")
        await cockpit.press("w").sees("age=100,fairshare=0,jobsize=5000").press("Ctrl-u").type("jobsize=20000")
        screen = await ordered(cockpit, "wide", "large", "small", "nice")
        assert next(line.split()[:3] for line in screen.splitlines() if "wide" in line) == ["2", "1", "▲"]
        await cockpit.press("Enter").sees("what if: 1 up, 1 down", "size 5 000 → 20 000").press("g")
        await cockpit.sees("6 wide  would go up by 1, from place 2 to 1 of 4")
        await ordered(cockpit.press("Esc"), "large", "wide", "small", "nice")
        await cockpit.misses("what if:", "WAS")


@pytest.mark.req("UI-07")
async def test_invalid_weights_are_reported_and_escape_changes_nothing() -> None:
    async with a_queue() as lab:
        cockpit = lab.cockpit.press("5").sees("PLACE").press("w", "Ctrl-u").type("speed=3").sees("speed is no factor")
        await cockpit.press("Enter").sees("speed is no factor").press("Esc").misses("speed")
        await ordered(cockpit, "large", "wide", "small", "nice")


@pytest.mark.req("UI-07")
async def test_the_chosen_factor_weighs_more_or_less_step_by_step() -> None:
    async with a_queue() as lab:
        cockpit = lab.cockpit.press("5").sees("PLACE").press("]", "]").press("+").sees("size 5 000 → 10 000")
        await cockpit.press("+").sees("→ 20 000").press("-", "-").misses("→ 20 000")
        await cockpit.press("[", "-").sees("age 100 → 50")


@pytest.mark.req("UI-07", "SC-15")
async def test_an_administrator_applies_the_weights_after_a_question() -> None:
    async with a_queue() as lab:
        cockpit = lab.cockpit.press("5").sees("PLACE")
        await cockpit.press("A").sees("You are not trying other weights")
        await cockpit.press("]", "]", "+", "+").sees("→ 20 000").press("A").sees("in force?").press("Enter").sees("WAS")
        assert (await lab.backend.rules()).priority.weights.job_size == 5000
        await cockpit.press("A").sees("in force?").press("y").sees("in force: weights").misses("WAS")
        assert (await lab.backend.rules()).priority.weights.job_size == 20_000
        await ordered(cockpit, "wide", "large", "small", "nice")


@pytest.mark.req("UI-07", "SC-15")
async def test_fixed_weights_are_not_changed_and_the_reason_is_shown() -> None:
    async with a_queue() as lab:
        rules = await lab.backend.rules()
        fixed = Cluster(priority=rules.priority, mutable=False)
        await lab.demo.host.act(lambda _machine, _now: [ClusterConfigured(fixed)], Act(actor="engine", origin="engine"))
        cockpit = lab.cockpit.press("5").sees("PLACE").press("+").sees("WAS").press("A", "y")
        await cockpit.sees("mutable = false").sees("WAS")
        assert await lab.backend.rules() == fixed


@pytest.mark.req("UI-07")
async def test_in_order_of_submission_the_priority_view_says_what_to_do() -> None:
    async with a_queue(None) as lab:
        await lab.cockpit.press("5").sees("order of submission", "cockpit cluster init", "docs/scheduling.md")
        await lab.cockpit.press("w").press("Ctrl-u").type("jobsize=1000").press("Enter").sees("WAS", "what if")
        await lab.cockpit.press("Esc").sees("order of submission")


@pytest.mark.req("UI-07")
@pytest.mark.parametrize("key", ["<", ">", "R"])
async def test_jobs_without_priorities_are_not_sorted_by_any_column(key: str) -> None:
    async with a_queue(None) as lab:
        await lab.cockpit.press("5").sees("order of submission").press(key, "1").sees("wide")
        await lab.cockpit.press("5").sees("order of submission").press("5", key).sees("order of submission")


@pytest.mark.req("UI-07")
async def test_an_empty_queue_is_reported_in_the_priority_view() -> None:
    async with a_lab() as lab:
        await lab.backend.set_weights(WEIGHTS)
        await lab.cockpit.press("5").sees("No jobs are queued", "submit one")


@pytest.mark.req("UI-07")
async def test_the_cursor_stays_with_its_job_when_the_order_changes() -> None:
    async with a_queue() as lab:
        cockpit = lab.cockpit
        await cockpit.press("5").sees("PLACE").press("j").stands_on("wide")
        await lab.backend.set_weights(WeightChanges(job_size=20_000))
        await cockpit.press("Ctrl-r").stands_on("wide")
        screen = await ordered(cockpit, "wide", "large", "small", "nice")
        assert "wide" in under_cursor(screen)


@pytest.mark.req("UI-07")
async def test_a_job_is_held_and_opened_from_its_row() -> None:
    async with a_queue() as lab:
        cockpit = lab.cockpit.press("5").sees("PLACE").press("j").stands_on("wide").press("H")
        await cockpit.press("Ctrl-r").sees("held, and not considered").press("G").sees("is held: it is not considered")
        await cockpit.press("Enter").sees("Why").press("Esc").sees("PLACE")


@pytest.mark.req("UI-07")
async def test_without_colours_the_bars_are_letters() -> None:
    async with a_queue(ascii_only=True) as lab:
        screen = await lab.cockpit.press("5").sees("PLACE", "tttt", "ssss")
        assert screen.isascii()


@pytest.mark.req("UI-07")
async def test_of_jobs_one_may_not_see_only_the_place_is_shown() -> None:
    async with a_queue() as lab:
        state = lab.demo.host.machine.state
        bob: Submitter = next(each.submitter for each in state.jobs.values() if each.submitter.name == "bob")
        rows = (await InProcessBackend(lab.backend._engine, Actor(bob, admin=False)).priorities()).rows
        lab.cockpit.app.poller._priority_feed._ask = _always(rows, await lab.backend.priorities())
        await lab.cockpit.press("5").sees("another user's", "wide").press("g").sees("is shown with its place only")


def _always(rows: Any, whole: Any) -> Any:
    async def priorities(_weights: Any = None) -> Any:
        return replace(whole, rows=rows)

    return priorities


@pytest.mark.req("UI-07")
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_every_screen_size_shows_position_name_total_and_bar(size: tuple[int, int]) -> None:
    async with a_queue(size=size) as lab:
        screen = await lab.cockpit.press("5").sees("PLACE", "TOTAL", "▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆", "large", "ahead of")
        assert all(len(line) <= size[0] for line in screen.splitlines())


@pytest.mark.req("UI-07")
async def test_help_lists_the_keys_of_the_view() -> None:
    async with a_queue() as lab:
        await lab.cockpit.press("5").sees("PLACE").press("?").sees("Try other weights", "order of the queue")
        await lab.cockpit.press("Esc").sees("PLACE")


@pytest.mark.req("UI-07")
async def test_sorting_a_queue_without_rows_is_harmless() -> None:
    """The table has no width while it is hidden; the columns are those of the screen."""
    async with a_queue() as lab:
        await ordered(lab.cockpit.press("5"), "large", "wide", "small", "nice")
        await lab.cockpit.press("/").type("user:mallory").press("Enter").misses("large")
        await lab.cockpit.press("greater_than_sign").sees("by id ▲").press("greater_than_sign").sees("by name ▲")
        await ordered(lab.cockpit.press("escape"), "large", "nice", "small", "wide")
    assert not lab.cockpit.app.failed


@pytest.mark.req("UI-07", "UI-22")
@pytest.mark.parametrize(("step", "neighbour"), [(1, "age"), (-1, "priority")])
async def test_from_a_column_that_is_not_shown_sorting_goes_to_its_shown_neighbour(step: int, neighbour: str) -> None:
    async with a_queue() as lab:
        await ordered(lab.cockpit.press("5"), "large", "wide", "small", "nice")
        arrangement = lab.cockpit.app.main_screen.arrangement
        assert "priority_before" not in arrangement.sortable()
        arrangement.sort_by("priority_before")
        arrangement.sort_by_neighbour(step)
        assert lab.cockpit.app.state.priority_rows.sort_column == neighbour


@pytest.mark.req("UI-07", "UI-22")
async def test_a_filter_that_hides_the_whole_queue_says_how_many_rows_it_hides() -> None:
    async with a_queue() as lab:
        await ordered(lab.cockpit.press("5"), "large", "wide", "small", "nice")
        await lab.cockpit.press("/").type("user:mallory").press("Enter")
        await lab.cockpit.sees("No queued job matches. 4 rows are hidden.")


@pytest.mark.req("UI-07", "UI-20")
async def test_weights_are_applied_only_after_a_trial() -> None:
    async with a_queue() as lab:
        await lab.cockpit.press("5").sees("PLACE").press("A").sees("You are not trying other weights.")
