"""What the engine needs of the outside, as protocols. `store` and `runtime` implement them; tests bring their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cockpit.engine.effects import (
        CheckNodes,
        FreezeReplica,
        KeepContainer,
        RemoveContainer,
        SignalReplica,
        StageReplica,
        StartReplica,
        TellWorkers,
        ThawReplica,
    )
    from cockpit.engine.state import ClusterState
    from cockpit.model.accounting import Spent
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.events import EventRecord
    from cockpit.model.forecast import PromisedStart
    from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
    from cockpit.model.job import Job
    from cockpit.model.requests import KeptAnswer
    from cockpit.model.usage import Used


class Clock(Protocol):
    """The one source of time."""

    def now(self) -> Millis: ...


class Journal(Protocol):
    """The truth: what is in here happened. A method that cannot raises `StoreError`, and then nothing changed."""

    async def load(self) -> tuple[ClusterState, int]:
        """The state as of the newest valid snapshot plus the tail after it, and the last sequence number."""
        ...

    async def append(self, records: Sequence[EventRecord], *, durable: bool, answer: KeptAnswer | None = None) -> None:
        """One transaction. `durable`: on the disk before this returns. `answer`: what a repeat is to be answered; its
        time is the journal's own."""
        ...

    async def answer(self, request: str) -> KeptAnswer | None:
        """The answer first given to this request id; None when it is new."""
        ...

    async def remember(self, answer: KeptAnswer) -> None:
        """Keep an answer that came with no event. Does nothing where the request id has one already."""
        ...

    async def forget_refusal(self, request: str) -> None:
        """Let this id, whose request was refused, be another request's."""
        ...

    async def submitted_by(self, request: str) -> list[JobId]:
        """The jobs that this request id submitted, as far back as events are kept."""
        ...

    async def snapshot(self, state: ClusterState, seq: int) -> None: ...

    async def record_ended(self, jobs: Sequence[Job]) -> None:
        """Into the accounting tables; a job already there is replaced."""
        ...

    async def ended_job(self, job: JobId) -> Job | None: ...

    async def ended_among(self, first: JobId, last: JobId) -> list[Job]:
        """Those with these ids or between them, in order of their ids."""
        ...

    async def ended_jobs(
        self, *, limit: int, user: str | None = None, since: Millis | None = None, until: Millis | None = None
    ) -> list[Job]:
        """Newest first; those that ended within the time, its beginning included."""
        ...

    async def spent(self, edges: Sequence[Millis], besides: Collection[JobId]) -> list[list[Spent]]:
        """What jobs that are over have held in each stretch between two edges; without these jobs."""
        ...

    async def promised_starts(self) -> list[PromisedStart]:
        """The latest starts that queued jobs were promised, as last saved, by job."""
        ...

    async def save_promised_starts(self, changed: Sequence[PromisedStart], over: Collection[JobId]) -> None:
        """Replace or add these, and remove those of jobs whose promises are over."""
        ...

    async def events(self, *, job: JobId | None, after: int, limit: int) -> list[EventRecord]:
        """Oldest first; `after` is a sequence number. With `after` < 0: the last `limit` events."""
        ...

    async def archive(self, before: Millis) -> int:
        """Move events from before `before` out of the journal, as far as snapshots allow; how many were moved."""
        ...

    async def check_room(self) -> None:
        """Raises `StoreError` where there is no room for further jobs. What concerns those that are there may still be
        written."""
        ...

    async def keep_spare(self) -> None:
        """Have room for that, whatever else fills the disk."""
        ...

    async def probe(self) -> None:
        """Raises `StoreError` for as long as the journal could not take a submission."""
        ...


class Observer(Protocol):
    """Where an executor tells what it sees. Called in the host's loop; must not block."""

    def replica_staged(self, replica: ReplicaId) -> None:
        """What it was to have copied is there."""

    def staging_moved(self, replica: ReplicaId) -> None:
        """Its copies have come further."""

    def disk_filled(self, because: str) -> None:
        """The disk that copies are made on is too full; empty: it is not any more."""

    def replica_started(self, replica: ReplicaId, limits: str) -> None: ...

    def replica_ended(self, replica: ReplicaId, exit_status: ExitStatus, used: Used | None = None) -> None:
        """`used`: what was measured of it."""

    def precheck_passed(self, replica: ReplicaId, found: str) -> None:
        """`found`: what its attempt's nodes have, in words."""

    def precheck_failed(self, replica: ReplicaId, node: NodeName, because: str) -> None: ...

    def prolog_failed(self, replica: ReplicaId, because: str) -> None:
        """Its command has not run, and will not in this attempt."""

    def worker_silent(self, replica: ReplicaId, silent_ms: int | None) -> None:
        """A worker of an elastic job has not been heard of for so long; None: it has not begun yet."""

    def node_pressed(self, node: NodeName) -> None:
        """A node with best-effort workers runs short of memory."""

    def epilog_failed(self, node: NodeName, because: str) -> None: ...


class Executor(Protocol):
    """Makes containers and runs commands in them. Failures are observations (`lost`, a sentence), never exceptions."""

    async def stage(self, effect: StageReplica) -> None: ...

    async def start(self, effect: StartReplica) -> None: ...

    async def check(self, effect: CheckNodes) -> None: ...

    async def signal(self, effect: SignalReplica) -> None: ...

    async def freeze(self, effect: FreezeReplica) -> None: ...

    async def thaw(self, effect: ThawReplica) -> None: ...

    async def tell(self, effect: TellWorkers) -> None: ...

    async def keep(self, effect: KeepContainer) -> None: ...

    async def remove(self, effect: RemoveContainer) -> None: ...

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        """After an engine start: watch what still runs, report what ended meanwhile, start what was never started,
        report as lost what disappeared, and remove the containers of replicas named in neither list."""
        ...
