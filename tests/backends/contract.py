"""What every backend that takes jobs must do. `test_contract` runs it over each of them.

A test asks nothing of the machine: its jobs are held, so they never start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import partial, wraps
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.formats.snapshotfile import read_snapshot, write_snapshot
from cockpit.model.accountchange import AddAccount, AddUser, AssociationChange, RemoveAccount
from cockpit.model.asking import LogRequest, LogSearch, ShellRequest, WantedLimit
from cockpit.model.capabilities import Ability
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, NodeName, job_words
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from cockpit.model.priority import WeightChanges
from cockpit.model.reasons import Held
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import PriorityWord
from cockpit.present.events.sentences import event_kind
from cockpit.protocol.operations import SHELL
from tests.builders import a_spec

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from cockpit.backends.base import Backend
    from cockpit.model.jobrow import JobRow
    from cockpit.model.spec import JobSpec

SOON = 60.0
FAR = Millis(4_000_000_000_000)
"""A moment in the year 2096, which every backend takes."""
UNKNOWN_JOB = JobId(987_654)


_numbers = count()


async def refused(asked: Coroutine[Any, Any, Any]) -> tuple[RefusalKind, str]:
    with pytest.raises(RequestRefused) as error:
        await asked
    return error.value.refusal.kind, error.value.refusal.message


def absent(backend: Backend, operations: Iterable[str]) -> dict[str, str]:
    """Return the reasons of those of these operations that the backend lacks."""
    lacked = {name: backend.capabilities.why_not(name) for name in operations}
    return {name: reason for name, reason in lacked.items() if reason}


def printed(reasons: Mapping[str, str]) -> bool:
    """Print what is absent with its reason, as `pytest -rP` shows it; return whether anything is."""
    for name, reason in reasons.items():
        print(f"absent: {name}: {reason}")  # noqa: T201 - the suite shows what is absent
    return bool(reasons)


def needs(*operations: str) -> Callable[[Callable[[Any, Backend], Awaitable[None]]], Any]:
    """Run the test where the backend has these operations; else print why each absent one is absent.

    `test_capabilities` checks that an absent operation is refused with its reason.
    """

    def over(test: Callable[[Any, Backend], Awaitable[None]]) -> Any:
        @wraps(test)
        async def checked(self: BackendContract, backend: Backend) -> None:
            if printed(absent(backend, operations)):
                return
            await test(self, backend)

        return checked

    return over


class BackendContract:
    """Needs a fixture `backend`. Each test runs where the backend has the operations that it needs."""

    unknown = UNKNOWN_JOB
    """Id of a job that does not exist."""
    counts_factors = True
    """Whether a priority is a sum of factors with weights, of which others can be tried out."""
    counts_jobs = True
    """Whether ids grow with each job; else those of one second are in any order."""

    def held(self, name: str) -> JobSpec:
        """Return a job that waits; live jobs of one project must have different names."""
        return self.prepared(a_spec(f"{name}-{next(_numbers)}", hold=True))

    def prepared(self, spec: JobSpec) -> JobSpec:
        """Return the job with what this cluster needs of every job."""
        return spec

    def waiting(self, name: str) -> JobSpec:
        """Return a held job that goes on waiting when it is released."""
        return replace(self.held(name), begin_at=FAR)

    @needs("submit")
    async def test_submitted_jobs_are_listed_in_order(self, backend: Backend) -> None:
        before = {row.id for row in await backend.jobs()}
        specs = [self.held("one"), self.held("two"), self.held("three")]
        ids = await backend.submit(specs)
        ordered = sorted(ids)
        assert ids == ordered or not self.counts_jobs
        assert not before & set(ids)
        rows = {row.id: row for row in await backend.jobs()}
        assert [job for job in rows if job in ids] == ordered
        assert [rows[job].name for job in ids] == [spec.name for spec in specs]
        assert {rows[job].state for job in ids} == {JobState.QUEUED}
        assert all(isinstance(rows[job].reason, Held) for job in ids)

    @needs("submit")
    async def test_all_of_a_submission_or_none(self, backend: Backend) -> None:
        before = await backend.jobs()
        kind, message = await refused(backend.submit([self.held("fine"), replace(self.held("bad"), nodes=0)]))
        assert kind is RefusalKind.INVALID
        assert message.startswith("jobs[1].nodes: ")
        assert [row.id for row in await backend.jobs()] == [row.id for row in before]

    @needs("submit")
    async def test_the_details_of_a_job_are_complete(self, backend: Backend) -> None:
        spec = self.held("told")
        (job,) = await backend.submit([spec])
        detail = await backend.job(job)
        (row,) = [row for row in await backend.jobs() if row.id == job]
        assert (detail.row, detail.job.spec.name) == (row, spec.name)
        assert detail.explanation is not None
        assert isinstance(detail.explanation.reason, Held)
        if not printed(absent(backend, [Ability.EVERY_EVENT])):
            assert [event_kind(record.body) for record in detail.events][:2] == ["job_submitted", "job_held"]

    @needs("submit", "cancel")
    async def test_a_stopped_job_has_ended_and_stays_findable(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("stopped")])
        assert await backend.wait(job, timeout_seconds=0.01) is None
        await backend.cancel(job)
        ended = await backend.wait(job, timeout_seconds=SOON)
        assert ended is not None
        assert ended.state is JobState.STOPPED
        assert job not in {row.id for row in await backend.jobs()}
        assert job in {row.id for row in await backend.jobs(ended=True)}
        assert (await backend.job(job)).row.state is JobState.STOPPED

    @needs("submit", "cancel")
    async def test_what_cannot_be_done_is_refused(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("refusing")])

        async def conflicts(requests: Mapping[str, Callable[[], Coroutine[Any, Any, Any]]]) -> list[str]:
            """Return the messages of the refusals of those requests that the backend has."""
            messages = []
            for name, ask in requests.items():
                if not printed(absent(backend, [name])):
                    kind, message = await refused(ask())
                    assert (name, kind) == (name, RefusalKind.CONFLICT)
                    messages.append(message)
            return messages

        await conflicts(
            {
                **{name: partial(getattr(backend, name), job) for name in ("hold", "end_hold", "suspend", "requeue")},
                "extend_hold": partial(backend.extend_hold, job, seconds=60),
                "unblock": partial(backend.unblock, job, NodeName("n1")),
                SHELL: partial(backend.open_shell, ShellRequest(job=job)),
            }
        )
        await backend.cancel(job)
        ended = ("cancel", "release", "hold", "resume")
        messages = await conflicts({name: partial(getattr(backend, name), job) for name in ended})
        assert all(job_words(job) in message for message in messages)

    async def test_a_job_that_does_not_exist_is_not_found(self, backend: Backend) -> None:
        unknown = self.unknown
        plain = ("job", "cancel", "hold", "release", "suspend", "resume", "requeue", "end_hold")
        questions = {name: partial(getattr(backend, name), unknown) for name in plain} | {
            "wait": lambda: backend.wait(unknown, timeout_seconds=SOON),
            "events": lambda: backend.events(job=unknown),
            "logs": lambda: backend.logs(LogRequest(job=unknown)),
            "search_log": lambda: backend.search_log(LogSearch(job=unknown, text="x")),
        }
        for name, ask in questions.items():
            if not printed(absent(backend, [name])):
                kind, message = await refused(ask())
                assert (name, kind, str(UNKNOWN_JOB) in message) == (name, RefusalKind.NOT_FOUND, True)

    @needs("submit", "cancel", "logs")
    async def test_a_job_that_never_ran_has_no_log(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("silent")])
        assert (await backend.logs(LogRequest(job=job))).data == b""
        await backend.cancel(job)
        assert (await backend.logs(LogRequest(job=job, wait=True))).ended

    @needs("submit", "priorities")
    async def test_the_queue_is_listed_in_its_order_whatever_weights_are_tried(self, backend: Backend) -> None:
        first, second = sorted(await backend.submit([self.held("ranked"), self.held("ranked")]))
        # all of them, for clusters that do not report their own
        every = WeightChanges(age=1000, assoc=0, fairshare=0, job_size=0, partition=0, qos=0, tres={"cpu": 0.0})
        tried = (None, every) if self.counts_factors else (None,)
        if not self.counts_factors:
            assert (await refused(backend.priorities(every)))[0] is RefusalKind.UNAVAILABLE
        for weights in tried:
            rows = [row for row in (await backend.priorities(weights)).rows if row.job in {first, second}]
            assert [(row.job, row.position) for row in rows] == [(first, None), (second, None)]
            assert all(row.breakdown is not None and row.breakdown.total == 0 for row in rows)

    @needs("submit", "cancel", "events", Ability.EVERY_EVENT)
    async def test_events_are_listed_oldest_first_and_can_be_continued(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("told")])
        await backend.cancel(job)
        told = await backend.events(job=job)
        assert [event_kind(record.body) for record in told] == ["job_submitted", "job_held", "job_ended"]
        assert await backend.events(job=job, after=told[0].seq) == told[1:]
        assert await backend.events(job=job, limit=1) == told[-1:]
        everything = await backend.events()
        assert [record.seq for record in everything] == sorted(record.seq for record in everything)
        assert [record for record in told if record not in everything] == []

    async def test_the_figures_agree_with_the_lists(self, backend: Backend) -> None:
        if not printed(absent(backend, ["submit"])):
            await backend.submit([self.held("counted")])
        overview, nodes = await backend.overview(), await backend.nodes()
        queued = [row for row in await backend.jobs() if row.state is JobState.QUEUED]
        assert overview.jobs_by_state["queued"] == sum(len(row.tasks) or 1 for row in queued)
        assert (overview.nodes, overview.cpus) == (len(nodes), sum(row.node.cpus for row in nodes))
        assert overview.used_cpus == sum(row.used_cpus for row in nodes)
        assert overview.held == len(await backend.holds())
        if not printed(absent(backend, ["status"])):
            assert (await backend.status()).running

    @needs("submit", "snapshot")
    async def test_a_snapshot_has_the_whole_cluster(self, backend: Backend) -> None:
        (job,) = await backend.submit(
            [replace(self.held("written down"), env={"API_TOKEN": "do not tell", "SEED": "7"})]
        )
        snapshot = await backend.snapshot()
        if not printed(absent(backend, [Ability.ENVIRONMENT])):
            assert snapshot.state.jobs[job].spec.env == {"API_TOKEN": "***", "SEED": "7"}
        assert "do not tell" not in write_snapshot(snapshot)
        assert set(snapshot.state.nodes) == {row.node.name for row in await backend.nodes()}
        assert read_snapshot(write_snapshot(snapshot), "file") == snapshot

    @needs("rules", "accounts", "change_accounts")
    async def test_accounts_are_changed_and_listed(self, backend: Backend) -> None:
        assert isinstance(await backend.rules(), Cluster)
        await backend.change_accounts(AddAccount("Optics", AssociationChange(shares=60)))
        await backend.change_accounts(AddUser("zoe", "optics"))
        rows = [row.association for row in (await backend.accounts()).rows]
        assert [(row.parent, row.shares) for row in rows if (row.account, row.user) == ("optics", "")] == [("root", 60)]
        assert "zoe" in {row.user for row in rows if row.account == "optics"}
        kind, message = await refused(backend.change_accounts(AddAccount("optics")))
        assert (kind, "optics" in message) == (RefusalKind.CONFLICT, True)
        await backend.change_accounts(RemoveAccount("optics"))
        assert "zoe" not in {row.association.user for row in (await backend.accounts()).rows}

    @needs("submit", "cancel", "accounting")
    async def test_what_has_ended_is_in_the_accounting(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("accounted")])
        assert job not in {each.row.id for each in await backend.accounting()}
        await backend.cancel(job)
        async with asyncio.timeout(SOON):
            while job not in {each.row.id for each in await backend.accounting()}:  # noqa: ASYNC110 - it is written beside
                await asyncio.sleep(0.01)
        (mine,) = [each for each in await backend.accounting() if each.row.id == job]
        assert (mine.row.state, mine.attempts, mine.card_milli_ms, mine.cpu_ms) == (JobState.STOPPED, 0, 0, None)
        ended_at = mine.row.ended_at
        assert ended_at is not None
        assert job not in {each.row.id for each in await backend.accounting(until=ended_at)}
        assert job in {each.row.id for each in await backend.accounting(since=ended_at, user=mine.row.user)}
        assert await backend.accounting(user="unknown-of-this-name") == []

    @needs("spending")
    async def test_allocated_resources_are_reported_by_interval(self, backend: Backend) -> None:
        edges = [Millis(0), Millis(1), Millis(10**14)]
        spending = await backend.spending(edges)
        assert (spending.edges, len(spending.stretches)) == (tuple(edges), 2)
        assert spending.stretches[0] == ()

    @needs("submit", "cancel")
    async def test_a_watch_sends_all_rows_and_then_the_changes(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("watched")])
        rows: dict[JobId, JobRow] = {}
        async with asyncio.timeout(SOON), aclosing(backend.watch_jobs()) as deltas:  # type: ignore[type-var] # they are generators
            async for delta in deltas:
                rows |= {row.id: row for row in delta.changed}
                if delta.loaded:
                    break
            assert rows[job].state is JobState.QUEUED
            await self.change(backend, job)
            async for delta in deltas:
                rows |= {row.id: row for row in delta.changed}
                if rows[job].state is JobState.STOPPED:
                    break
        assert rows[job] == (await backend.job(job)).row

    @needs("submit", "set_priority", "set_time_limit")
    async def test_priority_and_time_limit_of_a_queued_job_are_changed(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("changed")])
        await backend.set_priority(job, PriorityWord.URGENT)
        await backend.set_time_limit(job, WantedLimit(1800))
        spec = (await backend.job(job)).job.spec
        assert PriorityWord.URGENT in {spec.priority, spec.qos}  # Slurm's word for it is a QOS of this name
        assert spec.time_limit_seconds == 1800

    @needs("submit", "edit")
    async def test_a_queued_job_is_edited_under_its_id(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("before")])
        spec = (await backend.job(job)).job.spec
        await backend.edit(job, replace(spec, time_limit_seconds=1800))
        detail = await backend.job(job)
        assert (detail.row.id, detail.row.time_limit_seconds) == (job, 1800)

    @needs("submit", "edit")
    async def test_an_edited_environment_is_shown_or_the_edit_is_refused(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("before")])
        edited = replace((await backend.job(job)).job.spec, env={"EDITED": "1"})
        if printed(absent(backend, [Ability.ENVIRONMENT])):
            kind, message = await refused(backend.edit(job, edited))
            assert (kind, "env" in message) == (RefusalKind.INVALID, True)
        else:
            await backend.edit(job, edited)
            assert (await backend.job(job)).job.spec.env == {"EDITED": "1"}

    @needs("submit", "cancel", "delete")
    async def test_a_deleted_job_leaves_the_lists(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("deleted")])
        assert (await refused(backend.delete(job)))[0] is RefusalKind.CONFLICT
        await backend.cancel(job)
        assert await backend.wait(job, timeout_seconds=SOON) is not None
        await backend.delete(job)
        assert job not in {row.id for row in await backend.jobs(ended=True)}

    @needs("submit", "hold", "release")
    async def test_a_job_is_released_and_held_again(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.waiting("released")])
        await backend.release(job)
        assert not isinstance((await backend.job(job)).row.reason, Held)
        await backend.hold(job)
        assert isinstance((await backend.job(job)).row.reason, Held)

    @needs("submit", "explain", "starts")
    async def test_a_held_job_is_explained_and_has_no_expected_start(self, backend: Backend) -> None:
        (job,) = await backend.submit([self.held("explained")])
        assert (await backend.explain(job)).job == job
        assert await backend.starts([job]) == []

    @needs("predict")
    async def test_a_start_is_predicted_for_each_job(self, backend: Backend) -> None:
        before = len(await backend.jobs())
        assert (
            len(await backend.predict([self.prepared(a_spec("predicted-1")), self.prepared(a_spec("predicted-2"))]))
            == 2
        )
        assert len(await backend.jobs()) == before

    @needs("drain_node", "resume_node")
    async def test_a_node_is_drained_with_a_reason_and_resumed(self, backend: Backend) -> None:
        node = (await backend.nodes())[-1].node.name
        await backend.drain_node(node, "fan")
        drained = {row.node.name: row.node for row in await backend.nodes()}[node]
        # Slurm writes behind it who drained the node, and when.
        assert (drained.state, drained.state_reason.partition(" [")[0]) == (NodeState.DRAINED, "fan")
        await backend.resume_node(node)
        assert {row.node.name: row.node.state for row in await backend.nodes()}[node] is not NodeState.DRAINED

    @needs("reservations", "make_reservation", "end_reservation")
    async def test_a_reservation_is_made_listed_and_ended(self, backend: Backend) -> None:
        node = (await backend.nodes())[0].node.name
        wanted = Reservation(name="upkeep", nodes=(node,), start_at=FAR, end_at=FAR + 3_600_000, maintenance=True)
        await backend.make_reservation(wanted)
        assert "upkeep" in {each.name for each in await backend.reservations()}
        await backend.end_reservation("upkeep")
        assert "upkeep" not in {each.name for each in await backend.reservations()}

    @needs("staged", "unstage")
    async def test_a_staged_copy_that_does_not_exist_cannot_be_removed(self, backend: Backend) -> None:
        assert [copy for copy in await backend.staged() if copy.key == "none"] == []
        assert (await refused(backend.unstage("none")))[0] is RefusalKind.NOT_FOUND

    @needs("request")
    async def test_a_request_that_was_never_made_is_unknown(self, backend: Backend) -> None:
        assert not (await backend.request("never-made")).known

    async def change(self, backend: Backend, job: JobId) -> None:
        """Something for the watcher to see."""
        await backend.cancel(job)
