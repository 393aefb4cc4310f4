"""What a person does to jobs at the cockpit, and what it refuses, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.engine import workers
from cockpit.errors import LoginLost, RequestRefused
from cockpit.model.asking import ShellRequest
from cockpit.model.capabilities import Ability, Capabilities
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.resilience import Elastic
from cockpit.model.spec import Access, PriorityWord
from cockpit.present.units import duration
from cockpit.protocol.operations import TABLE
from cockpit.runtime.host import Act
from cockpit.tui.actions.all import ACTIONS
from tests.tui.lab import a_lab, a_members_lab, job, seat_of, the_lab

if TYPE_CHECKING:
    from tests.tui.lab import Lab


async def state_of(lab: Lab, number: int) -> JobState:
    rows = await lab.backend.jobs(ended=True)
    return next(row.state for row in rows if row.id == number)


@pytest.mark.req("UI-20")
async def test_cancel_asks_and_anything_but_yes_means_no() -> None:
    async with the_lab() as lab:
        for refusal in ("Enter", "Esc", "n", "q"):
            await lab.cockpit.press("x").sees("Stop job 1 train?").press(refusal).misses("Stop job")
            assert await state_of(lab, 1) is JobState.RUNNING, refusal
        await lab.cockpit.press("x").sees("Stop job 1 train?").press("y").sees("■ stopped")
        assert await state_of(lab, 1) is JobState.STOPPED


@pytest.mark.req("UI-20")
async def test_yes_can_be_chosen_with_the_arrows_too() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("x").sees("Stop job 1").press("Right", "Enter").sees("■ stopped")


async def test_hold_and_release_are_one_key() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("G", "k", "k").stands_on("wide").press("H").sees("held by alice")
        await lab.cockpit.press("H").misses("held by alice").stands_on("wide")


@pytest.mark.req("JT-31", "UI-20")
async def test_one_key_suspends_and_resumes_a_job_and_another_requeues_it() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("U").sees("⏸ suspended")
        assert await state_of(lab, 1) is JobState.SUSPENDED
        await lab.cockpit.press("U").misses("⏸ suspended")
        assert await state_of(lab, 1) is JobState.RUNNING
        await lab.cockpit.press("j").stands_on("held 3:").press("R").sees("Requeue job").press("y").misses("held 3:")


@pytest.mark.req("JT-37")
async def test_several_are_deleted_at_once_and_counted_first() -> None:
    async with the_lab() as lab:
        await lab.cockpit.press("j", "Space", "Space").press("X").sees("Delete 2 jobs?").press("Enter").sees("broken")
        await lab.cockpit.press("X").sees("Delete 2 jobs?").press("y").misses("broken", "done").sees("train")


@pytest.mark.req("JT-40")
async def test_a_hold_is_extended_and_ended() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("j").stands_on("held 3:").press("+").sees("held 5:")
        await cockpit.press("-").sees("End the hold").press("Enter").stands_on("held 5:")
        await cockpit.press("-").sees("End the hold").press("y").misses("held 5:").sees("✗ error")


@pytest.mark.req("UI-20")
async def test_an_unavailable_action_shows_its_reason() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("H").sees("Job 1 is running")
        await cockpit.press("j", "j", "x").stands_on("done").sees("Job 3 has ended (succeeded)")
        await cockpit.press("s").sees("a shell opens").press("+").sees("it holds no container")
        await cockpit.press("k", "k", "X").sees("Job 1 is running: cancel it first")


@pytest.mark.req("UI-12", "JT-40")
async def test_one_of_several_containers_is_chosen_with_failed_ones_first() -> None:
    async with a_lab(job("pair", "bash -c 'exit 3'", nodes=2, terminal=True)) as lab:
        asked = []

        async def open_shell(request: ShellRequest) -> None:
            asked.append((request.job, request.rank, request.terminal))
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, "not in this story"))

        lab.backend.open_shell = open_shell
        screen = await lab.cockpit.stands_on("pair").press("s").sees("job 1 pair: which container", "replica 1 on n02")
        assert "with exit 3" in screen
        await lab.cockpit.press("Esc").misses("which container")
        assert asked == []
        await lab.cockpit.press("s", "j", "Enter").sees("not in this story").misses("which container")
        assert asked == [(1, 1, True)]


@pytest.mark.req("KU-09", "UI-12")
async def test_a_shell_of_another_image_is_opened_by_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_lab(job("train", "sleep 600")) as lab:
        asked = []

        async def open_shell(request: ShellRequest) -> None:
            asked.append((request.job, request.rank, request.image))
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, "not in this story"))

        lab.backend.open_shell = open_shell
        await lab.cockpit.stands_on("train").press(":").type("debug busybox").press("Enter").sees("Only Kubernetes")
        assert asked == []
        present = lab.backend.capabilities.absent
        able = Capabilities({name: why for name, why in present.items() if name != Ability.DEBUG_IMAGE})
        monkeypatch.setattr(type(lab.backend), "capabilities", property(lambda _: able))
        await lab.cockpit.press("Esc", ":").type("debug busybox").press("Enter").sees("not in this story")
        assert asked == [(1, 0, "busybox")]


@pytest.mark.req("UI-28")
async def test_administrator_actions_are_dimmed_for_others_with_the_reason() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("2").stands_on("n01").press("D").sees("nodes drain n01").press("Esc")
        cockpit.app.backend = seat_of(lab, "bob")
        await cockpit.press("Ctrl-r", "D").sees("Only an administrator of this cluster may do this.")
        (drain,) = (key for key in cockpit.app.dispatcher.keys_of_view() if key.action == "drain")
        assert not drain.enabled


@pytest.mark.req("JT-60", "JT-02")
async def test_forbidden_actions_on_a_members_job_are_dimmed_with_the_reason() -> None:
    shared = [job(f"net-{each}", project="vision", access=each) for each in (Access.RO, Access.RW, Access.NONE)]
    async with a_members_lab(*shared) as cockpit:
        await cockpit.sees("net-ro", "net-rw").misses("net-none").press("x")
        await cockpit.sees("Job 1 is alice's, and its project", "(access: ro)")
        enabled = {key.action: key.enabled for key in cockpit.app.dispatcher.keys_of_view()}
        assert (enabled["cancel"], enabled["logs"], enabled["clone"]) == (False, True, True)
        await cockpit.press("j").stands_on("net-rw").press("x").sees("Stop job 2 net-rw?")


@pytest.mark.req("UI-28")
async def test_read_only_mode_dims_changing_actions_with_the_reason() -> None:
    async with the_lab(read_only="This cockpit was opened with --read-only.") as lab:
        cockpit = lab.cockpit
        await cockpit.sees(" ro · alice")
        for key in ("x", "H", "n", "e", "N", "X", "s", "+", "-"):
            screen = await cockpit.press(key).sees("opened with --read-only")
            assert "?" in screen
            cockpit.app.clear_notifications()
            await cockpit.misses("opened with --read-only", "Stop job")
        assert await state_of(lab, 1) is JobState.RUNNING
        await cockpit.press("Enter").sees("Spec").press("Esc").stands_on("train")


async def test_the_cockpit_reports_that_no_terminal_can_be_handed_to_a_shell() -> None:
    async with the_lab() as lab:
        del lab.cockpit.app.check_terminal
        await lab.cockpit.press("s").sees("no terminal")
        lab.cockpit.app.clear_notifications()
        await lab.cockpit.misses("no terminal").press("n").sees("New job").press("Ctrl-e").sees("no terminal")


@pytest.mark.req("JT-34")
async def test_a_priority_is_chosen_from_a_list_or_typed_on_the_command_line() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        await cockpit.press("P").sees("Job 1 is running: this is for queued jobs")
        await cockpit.press("G", "k", "k").stands_on("wide").press("P").sees("Priority of job", "very-urgent")
        await cockpit.press("j", "Enter").sees("priority urgent for job")
        number = next(row.id for row in await lab.backend.jobs() if row.name == "wide")
        assert (await lab.backend.job(number)).job.spec.priority is PriorityWord.URGENT
        await cockpit.type(":priority nrmal").press("Enter").sees("did you mean normal?")
        await cockpit.type(":priority normal").press("Enter").sees("priority normal for job")
        assert (await lab.backend.job(number)).job.spec.priority is PriorityWord.NORMAL


@pytest.mark.req("JT-35")
async def test_a_time_limit_is_chosen_from_a_list_or_typed_on_the_command_line() -> None:
    async with the_lab() as lab:
        cockpit = lab.cockpit
        limit = (await lab.backend.job(JobId(1))).job.spec.time_limit_seconds
        await cockpit.press("L").sees("Time limit of job 1", "one hour longer", duration(limit + 3600))
        await cockpit.press("Enter").sees("time limit +1h for job 1")
        assert (await lab.backend.job(JobId(1))).job.spec.time_limit_seconds == limit + 3600
        await cockpit.type(":time-limit soon").press("Enter").sees("soon is no time limit; write a time such as 6h")
        await cockpit.type(":time-limit -1h").press("Enter").sees("time limit -1h for job 1")
        await cockpit.press("L", "G", "Enter").type("9h").press("Enter").sees("time limit 9h for job 1")
        assert (await lab.backend.job(JobId(1))).job.spec.time_limit_seconds == 9 * 3600


@pytest.mark.req("TR-07")
@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "Press F7 to log in to lab again"),
        ({"login": ["F9"]}, "Press F9 to log in to lab again"),
        ({"login": []}, "Type :login to log in to lab again"),
    ],
)
async def test_a_lost_login_names_the_key_that_the_user_bound(keys: dict[str, list[str]], sentence: str) -> None:
    async with the_lab(keys=keys) as lab:
        lab.cockpit.app.poller._is_stale(LoginLost("lab"))
        assert lab.cockpit.app.state.top_bar().trouble == sentence


@pytest.mark.req("UI-20")
async def test_actions_that_only_slurm_supports_are_marked_among_the_commands() -> None:
    async with the_lab() as lab:
        only_slurm = "Only a Slurm cluster does this: this one is cockpit's own."
        refused = {entry.name for entry in lab.cockpit.app.dispatcher.palette() if only_slurm in entry.refusal}
        assert refused == {"signal", "top", "update"}


def test_an_action_needs_what_a_cluster_may_have() -> None:
    known = TABLE.keys() | set(Ability)
    assert {action.needs for action in ACTIONS if action.needs} <= known


@pytest.mark.req("EL-05")
async def test_a_node_is_chosen_from_the_block_list_and_taken_off() -> None:
    sized = Elastic(workers=2, max_workers=2)
    async with a_lab(job("grown", nodes=2, mode=None, elastic=sized), job("plain")) as lab:
        cockpit, host = lab.cockpit, lab.demo.backend._engine.host
        await (
            cockpit.stands_on("grown")
            .press(":")
            .type("unblock")
            .press("Enter")
            .sees("No node is on the block list of job 1")
        )
        leaving = workers.remove_workers
        cause = Act(actor="root", origin="engine")
        await host.act(lambda it, _: leaving(it.state, it.state.jobs[JobId(1)], (1,), "it did not answer"), cause)
        (blocked,) = (await lab.backend.job(JobId(1))).job.attempt.blocked
        await (
            cockpit.press(":")
            .type("unblock")
            .press("Enter")
            .sees("Block list of job 1 grown", blocked, "it did not answer")
        )
        await cockpit.press("Enter").sees(f"job 1 grown may have workers on {blocked} again")
        assert (await lab.backend.job(JobId(1))).job.attempt.blocked == frozenset()
        await (
            cockpit.press("j")
            .stands_on("plain")
            .press(":")
            .type("unblock")
            .press("Enter")
            .sees("this is for elastic jobs")
        )


@pytest.mark.req("KU-10")
async def test_the_workers_of_an_elastic_job_are_changed_by_a_command() -> None:
    sized = Elastic(workers=1, min_workers=1, max_workers=2)
    async with a_lab(job("grows", nodes=1, mode=None, elastic=sized, hold=True), job("plain")) as lab:
        cockpit = lab.cockpit
        await cockpit.stands_on("grows").type(":scale many").press("Enter").sees("many is no number of workers")
        await cockpit.type(":scale +1").press("Enter").sees("2 workers for job 1 grows")
        spec = (await lab.backend.job(JobId(1))).job.spec
        assert (spec.nodes, spec.elastic.workers) == (2, 2)
        await cockpit.type(":scale 3").press("Enter").sees("max_workers")
        await cockpit.press("j").stands_on("plain").type(":scale 2").press("Enter").sees("this is for elastic jobs")
