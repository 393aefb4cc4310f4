"""What the backend of a Slurm cluster shows while it watches, opens shells and looks at ended jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from cockpit.backends.base import CommandPreview, JobsDelta, Phase
from cockpit.backends.slurm import opening
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.opening import Folders, open_recorded, opened
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.errors import NotRun, RequestRefused, Unreachable
from cockpit.model.asking import ShellRequest
from cockpit.model.directives import SendSignal
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.view import Overview
from cockpit.present.events.sentences import event_kind
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.observed_history import ObservedHistory, history_file
from tests.backends.slurm.paper_cluster import Changeable
from tests.backends.slurm.test_log_pieces import WithFiles

pytestmark = pytest.mark.req("SL-10")


class Cluster(Changeable):
    """The recorded cluster, whose texts a test changes and whose shells are noted."""

    def __init__(self) -> None:
        super().__init__("22.05")
        self.texts: dict[str, list[tuple[str, str]]] = {}
        """Words of recorded files, and what replaces them."""
        self.shells: list[tuple[str, ...]] = []
        self.ran: list[tuple[str, ...]] = []
        self.away = False

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        if self.away:
            raise Unreachable("lab is away.")
        if not reading:
            self.ran.append(tuple(argv))
            return Printed("", "", 0)
        if tuple(argv[:4]) == ("squeue", "--noheader", "--states=all", "--jobs=1"):
            return Printed("cockpit:copied rc=3 folder=/data/left\n", "", 0, verified=True)
        return await super().run(argv, seconds=seconds, stdin=stdin, reading=reading)

    def _text(self, name: str) -> str:
        text = super()._text(name)
        for old, new in self.texts.get(name, []):
            text = text.replace(old, new)
        return text

    def _printed(self, argv: Sequence[str]) -> str:
        return super()._printed(argv).replace("COPIED", "cockpit:copied rc=3 folder=/data/left")

    async def open_shell(self, argv: Sequence[str], request: ShellRequest):
        self.shells.append(tuple(argv))


def backend_of(cluster: Cluster, user: str = "alice", **words: object) -> tuple[SlurmBackend, VirtualClock]:
    clock = VirtualClock(cluster.recorded_at)
    reading = Reading(Answers(cluster, clock.now, Random(1)), clock.now)
    return SlurmBackend("lab", cluster, reading, clock, user, **words), clock


def of_job(number: int, old: str, new: str) -> tuple[str, str]:
    """Return a change of one job's record in what scontrol printed."""
    text = Cluster()._text("scontrol-job-d.txt")
    block = next(each for each in text.split("\n\n") if each.startswith(f"JobId={number} "))
    assert old in block
    return block, block.replace(old, new)


async def next_delta(backend: SlurmBackend, deltas: AsyncIterator[JobsDelta], clock: VirtualClock) -> JobsDelta:
    """Let the watcher look again after a minute."""
    async with asyncio.TaskGroup() as group:
        coming = group.create_task(anext(deltas))
        await asyncio.sleep(0)
        clock.advance(60_000)
        backend._watch.look_now()
    return coming.result()


async def test_the_changes_that_a_watcher_sees_are_kept_as_events() -> None:
    cluster = Cluster()
    backend, clock = backend_of(cluster)
    async with aclosing(backend.watch_jobs()) as deltas:
        first = await anext(deltas)
        assert first.version == 1
        cluster.texts["scontrol-job-d.txt"] = [
            of_job(9, "JobState=PENDING Reason=Priority", "JobState=PENDING Reason=JobHeldUser")
        ]
        second, seen_at = await next_delta(backend, deltas, clock), clock.now()
        cluster.texts.clear()
        await next_delta(backend, deltas, clock)
    assert 9 in {row.id for row in second.changed}
    assert second.version > first.version
    assert [(event_kind(each.body), each.at) for each in await backend.events(job=JobId(9))] == [("job_held", seen_at)]
    assert [event_kind(each.body) for each in await backend.events()] == ["job_held"]
    await backend.close()


async def test_a_watcher_is_stopped_by_a_failure_once_the_connection_is_no_longer_followed() -> None:
    cluster = Cluster()
    cluster.away = True
    backend, _ = backend_of(cluster)
    async with aclosing(backend.connections()) as states:
        assert (await anext(states)).phase is Phase.CONNECTING
    with pytest.raises(Unreachable, match="lab is away"):
        await anext(aiter(backend.watch_jobs()))
    assert backend.silence == "lab is away."
    await backend.close()


async def test_a_watcher_hears_that_the_cluster_is_silent_and_that_it_is_back() -> None:
    cluster = Cluster()
    backend, clock = backend_of(cluster)
    async with aclosing(backend.watch_jobs()) as deltas:
        assert (await anext(deltas)).changed
        assert backend.silence == ""
        for away in (True, False):
            cluster.away = away
            delta = await next_delta(backend, deltas, clock)
            assert delta == JobsDelta((), (), 1) if away else delta.version == 2
            assert backend.silence == ("lab is away." if away else "")
    await backend.close()


async def test_nothing_is_changed_on_a_cluster_that_has_never_answered() -> None:
    async def away() -> tuple[str, ObservedHistory]:
        raise Unreachable("lab is away.")

    cluster = Cluster()
    backend, _ = backend_of(cluster, introduction=away)
    for change in (backend.direct(SendSignal(8, "USR1")), backend.cancel(JobId(8))):
        with pytest.raises(Unreachable, match="lab is away"):
            await change
    assert cluster.ran == []


async def test_a_shell_begins_in_the_job_and_for_a_failed_one_beside_its_files() -> None:
    cluster = Cluster()
    backend, _ = backend_of(cluster)
    await backend.open_shell(ShellRequest(job=8))
    assert cluster.shells[0][:3] == ("srun", "--overlap", "--jobid=8")
    with pytest.raises(RequestRefused, match="only a running job can be entered"):
        await backend.open_shell(ShellRequest(job=9))
    cluster.texts["scontrol-job-d.txt"] = [
        of_job(1, "JobState=FAILED Reason=NonZeroExitCode", "JobState=PENDING Comment=COPIED Reason=BeginTime")
    ]
    backend, _ = backend_of(cluster)
    shown: list[CommandPreview] = []

    async def look(previews: Sequence[CommandPreview]) -> bool:
        shown.extend(previews)
        return len(shown) > 1

    backend.announce(look)
    with pytest.raises(NotRun):
        await backend.open_shell(ShellRequest(job=1))
    assert len(cluster.shells) == 1
    await backend.open_shell(ShellRequest(job=1))
    assert "--chdir=/data/left" in cluster.shells[1]
    assert shown[1].argv == cluster.shells[1]


async def test_the_last_lines_of_an_ended_job_are_on_its_page(tmp_path: Path) -> None:
    commands = WithFiles(tmp_path)
    clock = VirtualClock(commands.recorded_at)
    backend = SlurmBackend("lab", commands, Reading(Answers(commands, clock.now, Random(1)), clock.now), clock, "root")
    rows = {row.name: row for row in await backend.jobs(ended=True)}
    running = next(row for row in rows.values() if row.state is JobState.RUNNING)
    for row in (rows["fails"], running):
        path = tmp_path / (await backend.job(row.id)).job.spec.output[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"line {number}\n" for number in range(20)))
    clock.advance(1000)
    assert (await backend.job(rows["fails"].id)).log_tail == "\n".join(f"line {number}" for number in range(8, 20))
    assert (await backend.job(running.id)).log_tail == ""


@pytest.mark.req("SL-03")
@pytest.mark.parametrize(
    ("private", "whose", "shared"),
    [
        ("none", "here /etc/slurm", True),
        ("", "here ", True),
        ("jobs,nodes", "here ", False),
        ("none", "ssh://lab", False),
    ],
)
async def test_answers_are_shared_with_other_users_where_all_see_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: str, whose: str, shared: bool
) -> None:
    made: list[tuple[str, str, frozenset[int]]] = []

    def cache_for(cluster: str, _own: Path, _now: object, *, shared: str, trusted: frozenset[int]) -> None:
        made.append((cluster, shared, trusted))

    monkeypatch.setattr(opening, "answer_cache_for", cache_for)
    cluster = Cluster()
    cluster.texts["scontrol-config.txt"] = [
        ("PrivateData             = none", f"PrivateData             = {private}"),
        ("SlurmUser               = root(0)", "SlurmUser               = slurm(64030)"),
    ]
    clock = VirtualClock(cluster.recorded_at)
    backend = await opened(cluster, clock, "ann", Folders(tmp_path / "a", tmp_path / "h"), whose)
    ((name, others, trusted),) = made
    identity = name.removeprefix(f"{whose} ")
    assert identity.split(" ")[0] == "cock"
    assert (others, trusted) == (identity if shared else "", {0, 64030})
    await backend.close()


def test_the_history_of_each_way_to_a_cluster_has_its_own_file(tmp_path: Path) -> None:
    one, other = (history_file(tmp_path, "a/b c", whose) for whose in ("here ", "ssh://lab"))
    assert one.parent == tmp_path
    assert one.name.startswith("a_b_c-")
    assert one.suffix == ".jsonl"
    assert one != other
    assert len(history_file(tmp_path, "x" * 300, "here ").name) < 100
    assert [opening._uid(text) for text in ("slurm(64030)", "root", "")] == [64030, 0, 0]


async def test_a_command_that_a_recording_lacks_fails() -> None:
    backend, now = await open_recorded("22.05")
    with pytest.raises(Unreachable, match="The recording has no sdiag"):
        await backend._reading._answers.ask(("sdiag",), 1.0)
    assert now() == backend._clock.now() > Millis(0)


async def test_a_job_that_leaves_the_list_after_it_was_looked_up_is_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rows may be those of a newer list than the job: job 4 is cancelled and purged between the two."""
    backend, _ = backend_of(Cluster())
    older = await backend._reading.jobs()
    lists = [older]

    async def read_jobs() -> tuple[Listed, ...]:
        return lists.pop() if lists else tuple(each for each in older if each.id != 4)

    monkeypatch.setattr(backend._reading, "jobs", read_jobs)
    detail = await backend.job(JobId(4))
    assert (detail.row.id, detail.row.state) == (4, JobState.STOPPED)
    lists.append(older)
    with pytest.raises(RequestRefused, match="Job 4 is stopped; only a queued job waits"):
        await backend.explain(JobId(4))


async def test_the_headers_figures_are_reported_when_they_change_and_looked_at_only_now_and_then() -> None:
    backend, clock = backend_of(Cluster())
    first = await backend.overview()
    second = replace(first, cluster="other")
    coming, looks = [first, first, second], 0

    async def figures() -> Overview:
        nonlocal looks
        looks += 1
        assert looks <= len(coming), "the cluster is asked without a pause"
        return coming[looks - 1]

    async with aclosing(backend._watch.overviews(figures)) as shown:
        assert await anext(shown) == first
        async with asyncio.TaskGroup() as group:
            following = group.create_task(anext(shown))
            for expected in (2, 3):
                for _ in range(20):
                    await asyncio.sleep(0)
                assert looks == expected - 1
                clock.advance(60_000)
                backend._watch.look_now()
        assert following.result() == second
    await backend.close()
