"""Where jobs wait, who holds how much and who borrows: the Queues view."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from cockpit.model.quota import QuotaNode, QuotaTree
from tests.tui.driver import Cockpit
from tests.tui.lab import Lab, the_lab

WHOLE = {"gres/gpu": 16_000, "cpu": 64_000}
ALICES = QuotaNode(name="alices", min={"gres/gpu": 4_000}, max={"gres/gpu": 16_000}, namespaces=("alice",))
BOBS = QuotaNode(name="bobs", min={"gres/gpu": 6_000}, max={"jobs": 1_000}, namespaces=("bob",))
TREE = QuotaTree("groups", QuotaNode(name="root", min=WHOLE, max=WHOLE, children=(ALICES, BOBS)))


async def with_quotas(lab: Lab) -> Cockpit:
    await lab.backend.apply_quota(TREE)
    return lab.cockpit.press("6").sees("alices", "bobs", "(all nodes)")


async def projects(lab: Lab) -> dict[str, str]:
    return {row.user: row.project for row in await lab.backend.jobs()}


def row_of(screen: str, name: str) -> str:
    """Without the mark of the cursor."""
    lines = (line[1:] for line in screen.splitlines())
    return next(line for line in lines if line.strip().startswith(f"{name} "))


@pytest.mark.req("UI-06", "FL-03")
async def test_the_tree_and_the_partitions_with_bars() -> None:
    async with the_lab() as lab:
        assert await projects(lab) == {"alice": "alice", "bob": "bob"}
        screen = await (await with_quotas(lab)).sees("CARDS used/min/max")
        root, alices, bobs, nodes = (row_of(screen, name) for name in ("root", "alices", "bobs", "(all nodes)"))
        assert alices.index("alices") == root.index("root") + 2
        assert "/4/16 ━" in alices
        assert "═" in alices
        assert "0/6/– ╌" in bobs
        assert "0/1" in bobs
        assert "part" in nodes
        assert "═" not in nodes + root


@pytest.mark.req("UI-06")
async def test_the_panel_shows_borrowing_and_lending_queues() -> None:
    async with the_lab() as lab:
        cockpit = await with_quotas(lab)
        await cockpit.press("j").stands_on("alices").sees("queue root/alices  borrows", "lenders may take it back")
        await cockpit.press("j").stands_on("bobs").sees("lends     6 cards, and gets it back", "at most 1 at once")
        await cockpit.press("j").stands_on("(all nodes)").sees("jobs wait here")


@pytest.mark.req("UI-06")
async def test_enter_shows_the_jobs_of_the_queue_and_of_all_below_it() -> None:
    async with the_lab() as lab:
        cockpit = await with_quotas(lab)
        await cockpit.press("j", "j").stands_on("bobs").press("Enter").sees('/ project:"bob"', "eval").misses("train")
        await cockpit.press("Esc", "6").sees("alices").press("g").stands_on("root").press("Enter")
        await cockpit.sees('project:"alice","bob"', "eval", "train")


@pytest.mark.req("UI-06", "UI-22")
async def test_a_filter_and_a_command() -> None:
    async with the_lab() as lab:
        cockpit = await with_quotas(lab)
        await cockpit.press("/").type("kind:partition").press("Enter").misses("alices").sees("(all nodes)").press("Esc")
        await cockpit.sees("alices").press("1").press(":").type("queues").press("Enter").sees("alices")


@pytest.mark.req("UI-06")
async def test_without_a_quota_tree_the_partitions_and_the_way_to_create_one_are_shown() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("6").sees("(all nodes)", "There is no quota tree", "cockpit quota apply FILE")


@pytest.mark.req("UI-06", "UI-24")
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_queues_view_fits_small_and_large_terminals(size: tuple[int, int]) -> None:
    async with the_lab(size=size) as lab:
        screen = await (await with_quotas(lab)).sees("CPUS used/min/max")
        assert max(map(cell_len, screen.splitlines())) <= size[0]
        assert ("BORROWED" in screen) == (size[0] == 200)
        assert "its own   ═ borrowed" in screen


@pytest.mark.req("UI-06", "UI-24")
async def test_the_parts_of_a_bar_are_distinct_in_ascii() -> None:
    async with the_lab(ascii_only=True) as lab:
        screen = await with_quotas(lab)
        alices = row_of(await screen, "alices")
        assert "=" in alices
        assert "$" in alices
