"""The interfaces that the engine needs: clock, journal, observer and executor. `store` and `runtime` implement them."""

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
        ThawReplica,
        WriteWorkersFile,
    )
    from cockpit.engine.state import ClusterState
    from cockpit.model.accounting import UsageSum
    from cockpit.model.attempt import ExitStatus
    from cockpit.model.events import EventRecord
    from cockpit.model.forecast import PromisedStart
    from cockpit.model.ids import JobId, Millis, NodeName, ReplicaId
    from cockpit.model.job import Job
    from cockpit.model.requests import KeptAnswer
    from cockpit.model.steps import StepReport
    from cockpit.model.usage import ReplicaTotals


class Clock(Protocol):
    """The only source of time."""

    def now(self) -> Millis:
        """Return the present time."""
        ...


class Journal(Protocol):
    """Stores events and everything else that must survive the engine.

    A method that fails raises `StoreError` and has changed nothing.
    """

    async def load(self) -> tuple[ClusterState, int]:
        """Return the state after the last event, from the newest valid snapshot on, and the last sequence number."""
        ...

    async def append(self, records: Sequence[EventRecord], *, durable: bool, answer: KeptAnswer | None = None) -> None:
        """Append events in one transaction, with the answer that a repetition of their request gets.

        `durable`: wait until they are on the disk. The journal sets the time of the answer.
        """
        ...

    async def answer(self, request: str) -> KeptAnswer | None:
        """Return the first answer to the request of this id; None: the id is new."""
        ...

    async def remember(self, answer: KeptAnswer) -> None:
        """Store the refusal of a request, unless its id has an answer already, or the final answer of a change in place
        of the one that was stored with its events."""
        ...

    async def forget_refusal(self, request: str) -> None:
        """Delete the refusal of a request, so that another request may have its id."""
        ...

    async def submitted_by(self, request: str) -> list[JobId]:
        """Return the jobs that this request submitted, as far back as events are stored."""
        ...

    async def snapshot(self, state: ClusterState, seq: int) -> None:
        """Store the state after event `seq`."""
        ...

    async def record_ended(self, jobs: Sequence[Job]) -> None:
        """Store ended jobs in the accounting tables, in place of earlier records of these jobs."""
        ...

    async def ended_job(self, job: JobId) -> Job | None:
        """Return an ended job from the accounting tables; None: it is not there."""
        ...

    async def ended_among(self, first: JobId, last: JobId) -> list[Job]:
        """Return the ended jobs with ids from `first` to `last`, in order of their ids."""
        ...

    async def ended_jobs(
        self, *, limit: int, user: str | None = None, since: Millis | None = None, until: Millis | None = None
    ) -> list[Job]:
        """Return the last `limit` ended jobs, newest first: of one user, and that ended in [`since`, `until`)."""
        ...

    async def spent(self, edges: Sequence[Millis], besides: Collection[JobId]) -> list[list[UsageSum]]:
        """Return the usage of ended jobs in each interval between two edges, without the jobs of `besides`."""
        ...

    async def promised_starts(self) -> list[PromisedStart]:
        """Return the stored latest starts that users were shown for queued jobs, by job."""
        ...

    async def save_promised_starts(self, changed: Sequence[PromisedStart], over: Collection[JobId]) -> None:
        """Store changed promises, and delete those of the jobs `over`."""
        ...

    async def events(self, *, job: JobId | None, after: int, limit: int) -> list[EventRecord]:
        """Return at most `limit` events after sequence number `after`, oldest first; below 0: the last ones."""
        ...

    async def archive(self, before: Millis) -> int:
        """Move events older than `before` out of the journal, as far as snapshots allow; return how many."""
        ...

    async def check_room(self) -> None:
        """Raise `StoreError` if the disk is too full for further jobs. Events of present jobs may still be stored."""
        ...

    async def keep_spare(self) -> None:
        """Reserve disk space for the events of present jobs, whatever else fills the disk."""
        ...

    async def probe(self) -> None:
        """Raise `StoreError` while the journal could not store a submission."""
        ...


class Observer(Protocol):
    """Receives what an executor observes. Its methods are called in the host's loop and must not block."""

    def replica_staged(self, replica: ReplicaId) -> None:
        """All files of the replica have been copied."""

    def staging_moved(self, replica: ReplicaId) -> None:
        """The staging of the replica has progressed."""

    def disk_filled(self, because: str) -> None:
        """The disk for staged copies is too full, as `because` says; empty: it is not any more."""

    def replica_started(self, replica: ReplicaId, limits: str) -> None:
        """The replica's command runs; `limits` says how its limits are enforced."""

    def replica_ended(self, replica: ReplicaId, exit_status: ExitStatus, used: ReplicaTotals | None = None) -> None:
        """The replica has ended; `used`: its measured usage, if any."""

    def precheck_passed(self, replica: ReplicaId, found: str) -> None:
        """The checks of the attempt's nodes passed; `found`: what the nodes have, as text."""

    def precheck_failed(self, replica: ReplicaId, node: NodeName, because: str) -> None:
        """A node lacks what the attempt was allocated."""

    def prolog_failed(self, replica: ReplicaId, because: str) -> None:
        """A prolog failed on the replica's node, so that its command will not run in this attempt."""

    def worker_silent(self, replica: ReplicaId, silent_ms: int | None) -> None:
        """A worker of an elastic job has given no sign of life for `silent_ms`; None: it has given none yet."""

    def worker_stepped(self, replica: ReplicaId, report: StepReport) -> None:
        """A worker of an elastic job has reported how far its training is."""

    def node_pressed(self, node: NodeName) -> None:
        """A node with best-effort workers runs short of memory."""

    def epilog_failed(self, node: NodeName, because: str) -> None:
        """An epilog failed on the node."""


class Executor(Protocol):
    """Makes containers and runs commands in them, by carrying out effects.

    Failures are observations (an exit status with `lost`, a sentence), never exceptions.
    """

    async def stage(self, effect: StageReplica) -> None: ...

    async def start(self, effect: StartReplica) -> None: ...

    async def check(self, effect: CheckNodes) -> None: ...

    async def signal(self, effect: SignalReplica) -> None: ...

    async def freeze(self, effect: FreezeReplica) -> None: ...

    async def thaw(self, effect: ThawReplica) -> None: ...

    async def write_workers_file(self, effect: WriteWorkersFile) -> None: ...

    async def keep(self, effect: KeepContainer) -> None: ...

    async def remove(self, effect: RemoveContainer) -> None: ...

    async def adopt(self, expected: Sequence[StartReplica], kept: Sequence[KeepContainer]) -> None:
        """Take over the containers of an earlier engine process, after the engine's start.

        `expected`: the replicas that should run; `kept`: the containers that should be held.

        1. Watch replicas that still run.
        2. Report those that ended meanwhile.
        3. Start those that were never started.
        4. Report as lost those that disappeared.
        5. Remove the containers of replicas that neither list names.
        """
        ...
