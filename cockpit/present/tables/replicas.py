"""The columns of the replicas of a job: the figures of `kubectl get pod`, and how long a recalled worker still has."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from cockpit.launch.world import host_of
from cockpit.model.attempt import Replica
from cockpit.model.ids import Millis
from cockpit.model.job import Job
from cockpit.present import units
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.events.interruptions import preemption_words
from cockpit.present.states import seconds_left


class ReplicaStatus(StrEnum):
    """What a replica does, or how it ended."""

    PENDING = "pending"
    RUNNING = "running"
    LEAVING = "leaving"
    """It was asked to end, and still runs."""
    LEFT = "left"
    """Its elastic job continues without it."""
    COMPLETED = "completed"
    ERROR = "error"


class ReplicaRow(msgspec.Struct, frozen=True):
    """A replica of a job's last attempt."""

    name: str
    """Its host name."""
    replica: int
    ready: bool
    """Whether its container runs."""
    status: ReplicaStatus
    restarts: int
    """How often a failed worker was replaced to come to this one."""
    began_at: Millis | None
    ended_at: Millis | None
    node: str
    kill_at: Millis | None = None
    """When it is killed, if it was asked to end; None: it was not."""
    because: str = ""
    """Why it was asked to end, or why it has left; empty: neither, or it ended by itself."""


def replica_rows(job: Job) -> Iterator[ReplicaRow]:
    """Yield a row for each replica of the last attempt, those that have left included."""
    attempt = job.attempt
    places = attempt.places if attempt is not None else {}
    kill_at, because = leaving_replicas(job)
    for each in attempt.replicas if attempt is not None else ():
        yield ReplicaRow(
            name=host_of(job.spec, each.rank),
            replica=each.rank,
            ready=each.is_ready,
            status=_status(each, leaves=each.rank in kill_at),
            restarts=each.restarts,
            began_at=each.started_at,
            ended_at=each.ended_at if each.ended_at is not None else each.left_at,
            node=places[each.rank].node if each.rank in places else "",
            kill_at=kill_at.get(each.rank),
            because=because.get(each.rank, each.blocked),
        )


def leaving_replicas(job: Job) -> tuple[dict[int, Millis], dict[int, str]]:
    """Return for each replica that was asked to end when it is killed, and why."""
    attempt, ending = job.attempt, job.ending
    kill_at = {each.rank: each.kill_at for each in job.leaving}
    because = {each.rank: preemption_words(each.for_job, each.grounds) for each in job.leaving}
    if ending is not None and attempt is not None:
        # The whole job is asked to end. A worker that was recalled before keeps its own time if that is sooner.
        live = [each.rank for each in attempt.present_replicas if each.ended_at is None]
        kill_at |= {rank: min(ending.kill_at, kill_at.get(rank, ending.kill_at)) for rank in live}
        evicted = ending.for_job is not None or ending.grounds is not None
        words = preemption_words(ending.for_job, ending.grounds) if evicted else ending.cause.value.replace("_", " ")
        because |= {rank: words for rank in live if rank not in because}
    return kill_at, because


def ready_words(replica: Replica) -> str:
    """Return the number of running containers of the replica, of its one: `1/1`."""
    return f"{int(replica.is_ready)}/1"


def _status(replica: Replica, *, leaves: bool) -> ReplicaStatus:
    if replica.left_at is not None:
        return ReplicaStatus.LEFT
    if replica.exit is not None or replica.ended_at is not None:
        return ReplicaStatus.COMPLETED if replica.exit is not None and replica.exit.ok else ReplicaStatus.ERROR
    if leaves:
        return ReplicaStatus.LEAVING
    return ReplicaStatus.RUNNING if replica.started_at is not None else ReplicaStatus.PENDING


def _age(row: ReplicaRow, context: Context) -> int | None:
    if row.began_at is None:
        return None
    return max(0, (row.ended_at if row.ended_at is not None else context.now) - row.began_at) // 1000


def _leaves_in(row: ReplicaRow, context: Context) -> int | None:
    return None if row.kill_at is None else seconds_left(row.kill_at, context.now)


def _spoken(seconds: int | None) -> str:
    return "–" if seconds is None else units.spoken(seconds)


REPLICAS: Final = TableView(
    name="replicas",
    help="The replicas of a job",
    empty="The job has not been placed yet.",
    columns=(
        Column("name", "NAME", "Its host name"),
        Column("replica", "REPLICA", "Its number, which it keeps for its whole life", ValueKind.INTEGER),
        Column(
            "ready",
            "READY",
            "Its containers that run, of the one that it has",
            ValueKind.INTEGER,
            derive=lambda row, _: int(row.ready),
            words=lambda row, _: f"{int(row.ready)}/1",
        ),
        Column(
            "status",
            "STATUS",
            "Pending, running, leaving (asked to end), left, or how it ended",
            values=ReplicaStatus,
        ),
        Column("restarts", "RESTARTS", "How often a failed worker was replaced to come to it", ValueKind.INTEGER),
        Column(
            "age_seconds",
            "AGE",
            "How long it has run",
            ValueKind.SECONDS,
            derive=_age,
            words=lambda row, context: _spoken(_age(row, context)),
            nullable=True,
        ),
        Column("node", "NODE", "The node"),
        Column(
            "leaves_in",
            "KILLED IN",
            "Where it was asked to end: seconds until it is killed",
            ValueKind.SECONDS,
            derive=_leaves_in,
            words=lambda row, context: _spoken(_leaves_in(row, context)),
            nullable=True,
            rare=True,
        ),
        Column("because", "BECAUSE", "Why it was asked to end, or why its node was blocked", rare=True),
    ),
)
