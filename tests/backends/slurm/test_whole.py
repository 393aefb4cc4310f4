"""Answers that are cut, empty, or not what the command prints: the whole truth is shown, or an error."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from random import Random

import pytest

from cockpit.backends.slurm import backend as backend_module
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers, PollIntervals
from cockpit.backends.slurm.wire.calls import Garbled, Printed
from cockpit.errors import CockpitError, RequestRefused, Unreachable
from cockpit.runtime.clock import VirtualClock
from tests.backends.slurm.paper_cluster import Fault, PaperCluster

HASTE = PollIntervals(*(0.0 for _ in range(8)))
VIEWS: dict[str, Callable[[SlurmBackend], Awaitable[object]]] = {
    "jobs": lambda cluster: cluster.jobs(),
    "ended": lambda cluster: cluster.jobs(ended=True),
    "nodes": lambda cluster: cluster.nodes(),
    "queues": lambda cluster: cluster.queues(),
    "accounts": lambda cluster: cluster.accounts(),
    "priorities": lambda cluster: cluster.priorities(),
    "reservations": lambda cluster: cluster.reservations(),
    "accounting": lambda cluster: cluster.accounting(),
}
READ_BY = {
    "squeue": ("jobs", "ended", "nodes", "queues", "accounts", "priorities"),
    "scontrol show node": ("jobs", "nodes"),
    "scontrol show partition": ("queues", "nodes", "priorities"),
    "scontrol show config": ("accounts", "nodes"),
    "scontrol show job": ("nodes",),
    "scontrol show reservation": ("reservations", "jobs"),
    "scontrol show licenses": ("queues",),
    "sprio": ("priorities",),
    "sshare": ("accounts",),
    "sacctmgr list qos": ("accounts",),
    "sacctmgr list assoc": ("accounts",),
    "sacct": ("ended", "accounting"),
}
"""Which views show what each question answers."""
CROSS_CHECKED = {
    "squeue",
    "scontrol show node",
    "scontrol show partition",
    "scontrol show config",
    "scontrol show licenses",
    "sprio",
    "sshare",
    "sacctmgr list assoc",
    "sacctmgr list qos",
    "scontrol show job",
    "sacct",
}
"""A cut between two records is seen, too: something else tells of what is missing."""
RECORD_END = {"squeue": "~\n", "sacct": "~\n", "scontrol show job": "\n\n"}
"""How a record ends; of all others with the line."""


@pytest.fixture
def paper() -> PaperCluster:
    return PaperCluster()


def a_cockpit(paper: PaperCluster) -> tuple[SlurmBackend, VirtualClock]:
    clock = VirtualClock(paper.recorded_at)
    reading = Reading(Answers(paper, clock.now, Random(1)), clock.now, HASTE)
    return SlurmBackend("paper", paper, reading, clock, "alice"), clock


def cut(at: float) -> Fault:
    """After this part of it."""
    return lambda printed: printed._replace(stdout=printed.stdout[: int(at * len(printed.stdout))])


def with_garbage(at: float, seed: int) -> Fault:
    noise = random.Random(seed).randbytes(40).decode(errors="replace")

    def insert(printed: Printed) -> Printed:
        place = int(at * len(printed.stdout))
        return printed._replace(stdout=printed.stdout[:place] + noise + printed.stdout[place:])

    return insert


def garbage(seed: int) -> Fault:
    noise = random.Random(seed).randbytes(9000).decode(errors="replace")
    return lambda printed: printed._replace(stdout=noise)


def size(shown: object) -> int:
    """How many rows it has."""
    return len(getattr(shown, "rows", shown))


def is_between_records(subject: str, text: str) -> bool:
    return text.endswith(RECORD_END.get(subject, "\n"))


@pytest.mark.req("TR-04", "SL-02")
@pytest.mark.parametrize("subject", READ_BY)
async def test_a_truncated_answer_is_an_error_or_complete(paper: PaperCluster, subject: str) -> None:
    chance = random.Random(f"cut {subject}")
    whole, _ = a_cockpit(paper)
    truth = {name: await VIEWS[name](whole) for name in READ_BY[subject]}
    refused = 0
    for at in [0.0, *(chance.random() for _ in range(25))]:
        kept: list[str] = []

        def fault(printed: Printed, at: float = at, kept: list[str] = kept) -> Printed:
            done = cut(at)(printed)
            kept.append(done.stdout)
            return done

        paper.faults = {subject: fault}
        for name in READ_BY[subject]:
            cockpit, _ = a_cockpit(paper)
            try:
                seen = await VIEWS[name](cockpit)
            except (Unreachable, RequestRefused):
                refused += 1
                continue
            may_lack = subject not in CROSS_CHECKED and any(is_between_records(subject, text) for text in kept if text)
            assert seen == truth[name] or may_lack, (at, name, kept[-1][-80:])
    assert refused > 20, "the cuts were made"


@pytest.mark.req("TR-04", "SL-02")
@pytest.mark.parametrize("subject", READ_BY)
async def test_garbage_and_empty_answers_are_errors(paper: PaperCluster, subject: str) -> None:
    for seed in range(3):
        for fault in (garbage(seed), lambda printed: printed._replace(stdout=""), lambda _: Printed("x", "", -9)):
            paper.faults = {subject: fault}
            for name in READ_BY[subject]:
                cockpit, _ = a_cockpit(paper)
                try:
                    await VIEWS[name](cockpit)
                except (Unreachable, RequestRefused):  # unavailable: a database that is away
                    continue
                assert (await cockpit.status()).trouble, (subject, name)


@pytest.mark.req("TR-04", "SL-02")
@pytest.mark.parametrize("subject", ["squeue", "scontrol show node", "scontrol show partition"])
async def test_garbage_inside_an_answer_removes_no_record(paper: PaperCluster, subject: str) -> None:
    chance = random.Random(f"within {subject}")
    name = READ_BY[subject][0]
    whole, _ = a_cockpit(paper)
    count = size(await VIEWS[name](whole))
    for seed in range(40):
        paper.faults = {subject: with_garbage(chance.random(), seed)}
        cockpit, _ = a_cockpit(paper)
        try:
            seen = await VIEWS[name](cockpit)
        except Unreachable:
            continue
        assert size(seen) >= count


@pytest.mark.req("TR-04")
@pytest.mark.parametrize(
    "subject", ["squeue", "scontrol show node", "sprio", "sshare", "sacctmgr list assoc", "sacctmgr list qos"]
)
async def test_every_cut_between_two_records_is_noticed(paper: PaperCluster, subject: str) -> None:
    """First looks and later ones: a list without its last lines is well formed."""
    name = READ_BY[subject][0]
    cockpit, clock = a_cockpit(paper)
    truth = await VIEWS[name](cockpit)
    for lines in range(1, 4):

        def shortened(printed: Printed, lines: int = lines) -> Printed:
            return printed._replace(stdout="".join(printed.stdout.splitlines(keepends=True)[:lines]))

        paper.faults = {subject: shortened}
        fresh, _ = a_cockpit(paper)
        for each in (fresh, cockpit):
            with pytest.raises(Garbled, match="leaves out"):
                await VIEWS[name](each)
        paper.faults = {}
        clock.advance(60_000)
        assert await VIEWS[name](cockpit) == truth, "it recovers by itself"


@pytest.mark.req("TR-04", "SL-12")
async def test_a_cut_between_two_priorities_is_noticed_though_the_list_of_jobs_is_older(paper: PaperCluster) -> None:
    clock = VirtualClock(paper.recorded_at)
    reading = Reading(Answers(paper, clock.now, Random(1)), clock.now)
    await reading.jobs()
    clock.advance(9000)
    paper.faults = {"sprio": lambda printed: printed._replace(stdout=printed.stdout.partition("\n")[0] + "\n")}
    with pytest.raises(Garbled, match="leaves out"):
        await reading.priorities()


@pytest.mark.req("TR-04")
async def test_the_last_answer_is_shown_with_the_trouble(paper: PaperCluster) -> None:
    cockpit, clock = a_cockpit(paper)
    before = await cockpit.priorities()
    paper.faults = {"sprio": cut(0.5)}
    clock.advance(60_000)
    assert await cockpit.priorities() == before
    (trouble,) = (await cockpit.status()).trouble
    assert trouble.startswith("sprio is not available at the moment: The answer of sprio is not whole")
    assert trouble.endswith("Its last answer is shown.")


@pytest.mark.req("TR-04", "SL-30")
async def test_jobs_that_start_between_two_commands_are_no_error_of_sprio(paper: PaperCluster) -> None:
    """squeue listed the job as waiting; when sprio is asked for it alone, it has started."""
    job = "42"

    def without_job(printed: Printed) -> Printed:
        lines = printed.stdout.splitlines(keepends=True)
        return printed._replace(stdout="".join(line for line in lines if not line.startswith(f"{job}|")))

    paper.faults = {"sprio": without_job}
    with pytest.raises(Garbled, match="leaves out 42"):
        await a_cockpit(paper)[0].priorities()
    paper.started = {job}
    cockpit, _ = a_cockpit(paper)
    shown = {str(row.job): row for row in (await cockpit.priorities()).rows}
    assert shown["9"].breakdown is not None
    assert not (await cockpit.status()).trouble


@pytest.mark.req("TR-04")
async def test_a_truncated_answer_is_requested_again_at_once(paper: PaperCluster) -> None:
    places = [0.4]
    paper.faults = {"squeue": lambda printed: cut(places.pop())(printed) if places else printed}
    cockpit, _ = a_cockpit(paper)
    assert await cockpit.jobs()
    assert not places


@pytest.mark.req("TR-04", "SL-03")
async def test_jobs_that_ended_need_no_further_command(paper: PaperCluster) -> None:
    """The controller forgets ended jobs: then nothing is asked beside the list."""
    cockpit, clock = a_cockpit(paper)
    await cockpit.jobs()
    paper.asked.clear()
    clock.advance(60_000)
    await cockpit.jobs()
    assert "sdiag" not in paper.asked
    assert "scontrol show job" not in paper.asked


@pytest.mark.req("TR-04")
async def test_a_silent_accounting_is_not_an_empty_history(paper: PaperCluster) -> None:
    paper.faults = {"sacct": lambda _: Printed("", "sacct: error: Connection refused", 1)}
    cockpit, _ = a_cockpit(paper)
    with pytest.raises(RequestRefused) as refused:
        await cockpit.accounting()
    assert "does not answer sacct" in refused.value.refusal.message
    assert await cockpit.jobs(ended=True), "those that the controller knows"
    assert any("does not answer sacct" in each for each in (await cockpit.status()).trouble)
    with pytest.raises(CockpitError, match="does not answer sacct"):
        await cockpit.job(99_999)


@pytest.mark.req("SL-11", "SL-02")
async def test_private_data_hides_no_other_data(paper: PaperCluster) -> None:
    truth = await a_cockpit(paper)[0].jobs()
    denied = Printed("", "slurm_load_node: Access/permission denied\n", 1)
    paper.faults = dict.fromkeys(("scontrol show node", "scontrol show partition"), lambda _: denied)
    paper.faults["scontrol show job"] = lambda _: Printed("", "", -11)  # as 22.05 does then
    cockpit, _ = a_cockpit(paper)
    assert [row.id for row in await cockpit.jobs()] == [row.id for row in truth]
    assert await cockpit.priorities()
    assert "This cluster does not show its nodes to you (PrivateData)." in (await cockpit.status()).trouble
    with pytest.raises(RequestRefused, match="does not show its nodes to you"):
        await cockpit.nodes()


@pytest.mark.req("TR-04", "SL-01")
async def test_a_watcher_learns_that_the_cluster_fell_silent_and_that_it_answers_again(
    paper: PaperCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By empty changes: the rows that it has stay, and nothing is said to be gone."""
    monkeypatch.setattr(backend_module, "LOOK_SECONDS", 0.01)
    cockpit, clock = a_cockpit(paper)
    async with asyncio.timeout(30), aclosing(cockpit.watch_jobs()) as deltas:
        assert (await anext(deltas)).changed
        assert cockpit.silence == ""
        paper.faults = {"squeue": lambda _: Printed("", "Unable to contact slurm controller (connect failure)", 1)}
        clock.advance(60_000)
        silent = await anext(deltas)
        assert (silent.changed, silent.removed) == ((), ())
        assert "Unable to contact slurm controller" in cockpit.silence
        paper.faults = {}
        clock.advance(60_000)
        again = await anext(deltas)
        assert again.removed == ()
        assert cockpit.silence == ""
