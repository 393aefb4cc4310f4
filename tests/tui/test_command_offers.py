"""What the command line and the filter line offer while one types."""

from __future__ import annotations

import pytest

from cockpit.model.job import JobState
from cockpit.model.spec import Array
from cockpit.tui.actions.all import BY_ID, action_named
from cockpit.tui.command_offers import command_offer
from cockpit.tui.commands import _WITH_WORDS, COMMAND_HELP
from tests.tui.lab import Lab, a_lab, job, the_lab


def offered(lab: Lab) -> list[str]:
    """The words that are listed above the line."""
    return [each.word for each in lab.cockpit.app.main_screen.entry_line.entry.offered()[0].candidates]


@pytest.mark.req("UI-30")
async def test_actions_are_listed_while_one_types_with_their_help_or_reason() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").sees("more; Tab goes through them").type("ca").sees("cancel", "Stop jobs; kill after")
        # What cannot be used now comes last, with the reason.
        await cockpit.press("Ctrl-u").type("prio").sees("priority", "Job 1 is running: this is for queued jobs")
        await cockpit.press("Esc").misses("this is for queued jobs")


@pytest.mark.req("UI-30")
@pytest.mark.parametrize(
    ("typed", "words", "about"),
    [
        ("theme hi", ["high-contrast"], "High contrast"),
        ("priority very-u", ["very-urgent"], ""),
        ("sort us", ["user"], "user"),
        ("signal US", ["USR1", "USR2"], "the job decides"),
        ("nodes ", ["drain", "resume"], "Start no more jobs on nodes"),
        ("nodes drain n0", ["n01", "n02"], "up"),
        ("nodes drain n01 --re", ["--reason"], "what people read"),
        ("reclaim n01 --gr", ["--grace"], "must end"),
        ("accounts add-u", ["add-user"], "Add a user to an account"),
        ("accounts add-user bob --acc", ["--account"], "in this account"),
        ("catalogue add mod", ["model"], ""),
        ("filter state:que", ["queued"], ""),
        ("cancel tr", ["1"], "train · running · alice"),
        ("wid", ["5"], "wide · queued · alice"),
    ],
)
async def test_arguments_are_listed_with_what_they_are(typed: str, words: list[str], about: str) -> None:
    async with the_lab() as lab:
        await lab.cockpit.press(":").type(typed).sees(*words, about)
        assert offered(lab)[: len(words)] == words


@pytest.mark.req("UI-30")
@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("cancle", "There is no action cancle; did you mean cancel?"),
        ("theme lihgt", "There is no theme lihgt; did you mean light?"),
        ("priority nrmal", "There is no priority nrmal; did you mean normal?"),
        ("sort usr", "There is no column usr; did you mean user?"),
        ("nodes drian", "There is no word drian; did you mean drain?"),
        ("cancel trian", "There is no job trian; did you mean train?"),
    ],
)
async def test_a_wrong_word_names_the_nearest_before_and_after_enter(typed: str, sentence: str) -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").type(typed).sees(sentence)
        hint = sentence.partition("; ")[2]
        await cockpit.press("Enter").sees(hint)


@pytest.mark.req("UI-30")
async def test_jobs_for_which_the_action_is_impossible_come_last_with_the_reason() -> None:
    async with the_lab() as lab:
        context = lab.cockpit.app.dispatcher.context()
        candidates = command_offer(lab.cockpit.app, lab.cockpit.app.dispatcher.actions, context, "cancel e").candidates
        refused = [each.refusal for each in candidates]
        assert refused == sorted(refused, key=bool), "what can be done first"
        assert any(each.about.startswith("wide") and not each.refusal for each in candidates)
        assert any("has ended (error)" in each.refusal and each.about.startswith("broken") for each in candidates)


@pytest.mark.req("UI-30")
async def test_tab_goes_through_the_list_and_a_click_takes_one() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").type("theme ").press("Tab").sees("▸ ")
        entry = cockpit.app.main_screen.entry_line.entry
        names = [f"theme {name}" for name in cockpit.app.options.themes]
        seen = []
        for _ in names:
            seen.append(entry.value)
            await cockpit.press("Tab")
        assert seen == names
        await cockpit.press("Ctrl-u").type("nodes drain ").sees("n01", "n02")
        cockpit.app.main_screen.entry_line.entry.take(1)
        await cockpit.sees("nodes drain n02")


@pytest.mark.req("UI-30", "UI-22")
async def test_a_filter_offers_columns_values_and_saved_filters() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("/").type("sta").sees("state:")
        await cockpit.press("Tab").type("r").sees("running")
        assert "running" in offered(lab)
        await cockpit.press("Ctrl-u").type("state:running user:").sees("me", "your own", "bob")
        await cockpit.press("Ctrl-u").type("!name~x state:queued,ru").sees("running")
        await cockpit.press("Tab").sees("!name~x state:queued,running")
        await cockpit.press("Ctrl-u").type("state:faild").sees("did you mean failed?")
        await cockpit.press("Ctrl-u").type("train").sees("train")
        assert offered(lab) == []


@pytest.mark.req("UI-30")
async def test_a_command_names_the_job_that_it_is_about() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        # The marked job is another one: what was named counts.
        await cockpit.press("Space").press(":").type("hold wide").press("Enter").stands_on("wide").sees("held by alice")
        rows = {row.name: row for row in await lab.backend.jobs()}
        assert rows["train"].state is JobState.RUNNING
        await cockpit.press(":").type("cancel 4").press("Enter").sees("Stop job 4 tune?").press("Esc")
        await cockpit.press(":").type("logs train").press("Enter").sees("torch 2.6")


@pytest.mark.req("UI-30", "UI-01")
async def test_the_list_is_sorted_by_a_command() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").type("sort name").press("Enter", "g").stands_on("broken")
        await cockpit.press(":").type("sort name").press("Enter", "g").stands_on("训练")


@pytest.mark.req("UI-30")
def test_each_command_says_what_it_does() -> None:
    assert all(action_named(name) is not None or name in COMMAND_HELP for name in _WITH_WORDS)
    assert not {name for name in COMMAND_HELP if name.replace("-", "_") in BY_ID and name != "accounts"} - {
        "catalogue",
        "reservations",
    }


@pytest.mark.req("UI-30")
async def test_a_name_of_several_jobs_and_a_task_of_a_folded_array_are_not_acted_on() -> None:
    grid = job("grid", array=Array(indices=(0, 1, 2)), hold=True)
    async with a_lab(job("twin"), grid, bobs=(job("twin"),)) as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").type("cancel twin").press("Enter").sees("2 jobs are called twin; type the id")
        await cockpit.press(":").type("cancel 2_1").press("Enter").sees("Job 2_1 is part of a folded array")
        assert all(row.ended_at is None for row in await lab.backend.jobs())


@pytest.mark.req("UI-26", "UI-30")
async def test_a_click_behind_a_change_of_the_text_takes_nothing() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press(":").type("nodes drain ").press("Tab").sees("nodes drain n01")
        await cockpit.type("zzz").sees("zzz")
        entry = cockpit.app.main_screen.entry_line.entry
        entry.take(1)
        assert (entry.value, entry.offered()[1]) == ("nodes drain n01zzz", None)
        await cockpit.type("!").sees("zzz!").press("Esc")
        assert not cockpit.app.failed
