"""Who may use how much: a person looks at the tree and changes it, on a small cluster in its own time."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from cockpit.model import accountchange as change
from cockpit.model.accountchange import AssociationChange, LimitsChange
from tests.tui.driver import Cockpit
from tests.tui.lab import Lab, job, seat_of, the_lab

BOUNDS = LimitsChange(max_jobs=4, grp_tres={"gres/gpu": 16.0})


async def with_accounts(lab: Lab) -> Cockpit:
    """`ai` with `nlp` (alice) and `vision` (bob) below it; the view is open."""
    for wanted in (
        change.AddAccount("ai"),
        change.AddAccount("nlp", AssociationChange(parent="ai", shares=40)),
        change.AddAccount("vision", AssociationChange(parent="ai", shares=60, limits=BOUNDS)),
        change.AddUser("alice", "nlp"),
        change.AddUser("bob", "vision", change=AssociationChange(limits=LimitsChange(max_jobs=2))),
        change.AddQos("high", change.QosChange(priority=100)),
    ):
        await lab.backend.change_accounts(wanted)
    return lab.cockpit.press("4").sees("▾ ai", "vision", "alice")


@pytest.mark.req("SC-16", "UI-09")
async def test_the_account_tree_shows_shares_usage_and_limits() -> None:
    async with the_lab() as lab:
        screen = await (await with_accounts(lab)).sees("MaxJobs=4 GrpTRES=gres/gpu=16")
        vision = next(line for line in screen.splitlines() if "vision" in line)
        assert vision.split()[:4] == ["▾", "vision", "60", "60%"]
        bob = next(line for line in screen.splitlines() if "MaxJobs=2" in line)
        assert bob.index("bob") > vision.index("vision")
        await lab.cockpit.press("j", "j", "j").stands_on("nlp").sees("has 40 shares, 40% of those below ai.")


@pytest.mark.req("UI-09", "UI-23")
async def test_folding_keeps_the_cursor_and_shows_the_jobs_of_a_user() -> None:
    async with the_lab() as lab:
        cockpit = await with_accounts(lab)
        await cockpit.press("j", "j").stands_on("ai").press("Enter").sees("▸ ai").misses("vision").stands_on("ai")
        await cockpit.press("Enter").sees("▾ ai", "vision").press("G").stands_on("bob").press("z")
        await cockpit.stands_on("▸ vision").misses("bob").press("Z").sees("bob").press("Z").misses("nlp")
        await cockpit.press("Z").sees("bob").press("G").stands_on("bob").press("Enter").sees('/ user:"bob"', "eval")


@pytest.mark.req("UI-22", "UI-23")
async def test_a_filter_keeps_the_parents_of_matches_and_the_cursor_follows_its_row() -> None:
    async with the_lab() as lab:
        cockpit = await with_accounts(lab)
        await cockpit.press("G").stands_on("bob").press("/").type("user:alice").press("Enter")
        await cockpit.sees("▾ ai", "nlp", "alice").misses("vision").press("Esc").sees("vision")
        await cockpit.press("G").stands_on("bob")
        await lab.backend.change_accounts(change.AddAccount("aaa"))
        await lab.backend.change_accounts(change.AddUser("zoe", "nlp"))
        await cockpit.press("Ctrl-r").sees("zoe").stands_on("bob")
        await cockpit.press("/").type("colour:red").sees("have no column colour").press("Esc")


@pytest.mark.req("SC-16")
async def test_an_empty_accounts_view_says_what_to_do_first() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit.press("4").sees("There are no accounts yet", ":accounts add vision --shares 60")
        await cockpit.press(":").type("accounts add vision --shares 60").press("Enter").sees("added account vision")
        await (
            cockpit.press(":").type("accounts add-user alice --account vision").press("Enter").sees("▾ vision", "alice")
        )


@pytest.mark.req("SC-16", "UI-09")
async def test_keys_fill_the_command_line_for_the_row_under_the_cursor() -> None:
    async with the_lab() as lab:
        cockpit = await with_accounts(lab)
        await cockpit.press("G", "e").sees("accounts modify-user bob --account vision").type("MaxJobs=7").press("Enter")
        await cockpit.sees("changed user bob", "MaxJobs=7")
        await cockpit.press("n").sees("accounts add-user --account vision").type("carol").press("Enter").sees("carol")
        await cockpit.press("k", "N").sees("accounts add --parent vision").press("Esc")
        await cockpit.press("C").sees("accounts add-coordinator vision").type("bob").press("Enter")
        await cockpit.sees("added coordinators of vision", "run by    bob")


@pytest.mark.req("SC-16", "UI-20")
async def test_removing_asks_first_with_no_as_the_default() -> None:
    async with the_lab() as lab:
        cockpit = await with_accounts(lab)
        await cockpit.press("G", "X").sees("Remove user bob from account vision?").press("Enter").misses("Remove")
        assert any(row.association.user == "bob" for row in (await lab.backend.accounts()).rows)
        await cockpit.press("X", "y").sees("removed user bob").misses("MaxJobs=2")
        await cockpit.press(":").type("accounts remove vision").press("Enter").sees("Remove account vision?").press("y")
        await cockpit.sees("removed account vision")


@pytest.mark.req("SC-16")
async def test_refusals_are_shown_completely_and_change_nothing() -> None:
    async with the_lab() as lab:
        cockpit = await with_accounts(lab)
        await lab.backend.submit([job("charged")])
        await cockpit.press(":").type("accounts remove nlp").press("Enter").sees("Remove account nlp?")
        await cockpit.press("y").sees("It has jobs", "(alice,")
        await cockpit.press("Esc", ":").type("accounts add-usr x").press("Enter").sees("did you mean add-user?")
        await (
            cockpit.press(":").type("accounts modify nlp Colour=2").press("Enter").sees("Colour=2: is no setting here")
        )
        await cockpit.press(":").type("accounts add-user zoe").press("Enter").sees("required: --account")


@pytest.mark.req("SC-16")
async def test_the_qos_are_one_key_away() -> None:
    async with the_lab() as lab:
        cockpit = (await with_accounts(lab)).press("]").sees("PREEMPTS", "high").stands_on("high")
        await cockpit.press("e").sees("accounts modify-qos high").type("MaxWall=1:00:00").press("Enter")
        await cockpit.sees("MaxWall=01:00:00").press("n").type("low UsageFactor=0.5").press("Enter").sees("low")
        await cockpit.press("X").sees("Remove QOS high?").press("n").press("[").sees("vision")
        await cockpit.press(":").type("accounts qos").press("Enter").sees("PREEMPTS")


async def test_tab_completes_verbs_names_and_settings() -> None:
    async with the_lab() as lab:
        cockpit = await with_accounts(lab)
        await cockpit.press(":").type("accounts add-u").press("Tab").type(" eve --acc").press("Tab")
        await cockpit.type(" vis").press("Tab").type(" MaxJ").press("Tab").type("3")
        await cockpit.sees("accounts add-user eve --account vision MaxJobs=3").press("Enter").sees("eve", "MaxJobs=3")


@pytest.mark.req("SC-16", "UI-28")
async def test_a_user_without_rights_sees_why_accounts_cannot_be_changed() -> None:
    async with the_lab(read_only="This cockpit only looks.") as lab:
        cockpit = await with_accounts(lab)
        await cockpit.press("G", "X").sees("This cockpit only looks.").misses("Remove user")
        await cockpit.press(":").type("accounts remove vision").press("Enter").sees("This cockpit only looks.")
    async with the_lab() as lab:
        await with_accounts(lab)
        await lab.backend.change_accounts(change.AddCoordinators("vision", ("bob",)))
        lab.cockpit.app.backend = seat_of(lab, "bob")
        cockpit = lab.cockpit.press("Ctrl-r").misses("    alice").press("g", "j").stands_on("ai")
        await cockpit.press("X").sees("Only an administrator may change this").misses("Remove account")
        await cockpit.press("G", "n").sees("accounts add-user --account vision").type("eve").press("Enter").sees("eve")


@pytest.mark.req("UI-24")
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_accounts_view_fits_small_and_large_terminals(size: tuple[int, int]) -> None:
    async with the_lab(size=size) as lab:
        screen = await (await with_accounts(lab)).press("G").stands_on("bob").sees("LEVELFS", "FAIR", "LIMITS")
        assert max(map(cell_len, screen.splitlines())) <= size[0]
        assert ("DEFAULT" in screen) == (size[0] == 200)


@pytest.mark.req("UI-24")
async def test_the_accounts_view_works_in_ascii() -> None:
    async with the_lab(ascii_only=True) as lab:
        for wanted in (change.AddAccount("ai"), change.AddUser("alice", "ai")):
            await lab.backend.change_accounts(wanted)
        screen = await lab.cockpit.press("4").sees("v ai", "alice")
        assert screen.isascii() or "训" in screen
