"""The interface of a cluster backend: every operation that the terminal UI and the command line call on a cluster.

Every method may raise `RequestRefused` when the cluster refuses the request, and `Unreachable` when it does not answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cockpit.formats.snapshotfile import Snapshot
    from cockpit.model.accountchange import AccountChange
    from cockpit.model.accounting import EndedJob, Spending
    from cockpit.model.asking import LogChunk, LogRequest, ShellRequest, WantedLimit, WantedPriority
    from cockpit.model.catalogue import CatalogueShown, EntryChange
    from cockpit.model.cluster import Cluster, Reservation
    from cockpit.model.directives import Directive
    from cockpit.model.events import EventRecord
    from cockpit.model.forecast import Expected, Outlook
    from cockpit.model.ids import JobId, Millis
    from cockpit.model.job import Job
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.priority import WeightChanges
    from cockpit.model.quota import QuotaTree
    from cockpit.model.requests import RequestIds, RequestOutcome
    from cockpit.model.spec import JobSpec
    from cockpit.model.staging import StagedCopy
    from cockpit.model.view import (
        AccountsShown,
        ClusterRow,
        EngineStatus,
        HoldRow,
        NodeRow,
        Overview,
        Priorities,
        QueuesShown,
        WeightsSet,
    )


class Shown(NamedTuple):
    """A command that will run on the cluster, shown to the user beforehand."""

    argv: tuple[str, ...]
    stdin: str = ""
    """Standard input of the command; for a submission, the batch script."""


Announced = Callable[[Sequence[Shown]], Awaitable[bool]]
"""Receives the commands of an operation before they run. When it returns False, the operation raises `NotRun`."""


class ShellSession(Protocol):
    """A shell or command that runs inside a job's container. The file descriptors belong to the caller."""

    notice: str
    """Message for the user on entry; empty for plain commands."""
    terminal_fd: int | None
    """Master side of the pseudo terminal; None when the request wanted pipes."""
    pipe_fds: tuple[int, int, int] | None
    """Write end of stdin, read ends of stdout and stderr; None when there is a terminal."""
    control_fd: int
    """Socket that becomes readable when the shell has ended; closing it ends the shell."""

    def exit_code(self) -> int:
        """Block until the shell has ended and return its exit code; 128 + n after signal n."""
        ...


class JobsDelta(msgspec.Struct, frozen=True):
    """Changes of the job list since the previous delta."""

    changed: tuple[JobRow, ...]
    """New and changed rows."""
    removed: tuple[JobId, ...]
    """Ids of the jobs that left the list."""
    version: int
    loaded: bool = True
    """False while further deltas of the first load, or of the reload after a lost connection, are to come."""


class Phase(StrEnum):
    """State of a live connection."""

    CONNECTING = "connecting"
    """The first connection is under way: there is no data to show yet."""
    CONNECTED = "connected"
    STALE = "stale"
    """The cluster does not answer: the data shown is as old as `Connection.good_at`."""


class Connection(msgspec.Struct, frozen=True):
    """State of the connection to a cluster, and the age of the data shown."""

    phase: Phase
    reason: str = ""
    """Why it is not connected, as a sentence."""
    good_at: Millis | None = None
    """Time of the cluster's last answer; None: it has never answered."""


class TypedLogin(Protocol):
    """A login for which the user may have to type a password or a code."""

    @property
    def is_needed(self) -> bool:
        """The cluster refused the last attempt to connect without a typed login."""
        ...

    def ask_at_terminal(self) -> None:
        """Ask for the password or code, and return when the user is logged in.

        Blocks, and uses the terminal: nothing else may use it until this returns. Raises `Unreachable`.
        """
        ...


class Backend(Protocol):
    """The operations of one cluster."""

    def announce(self, look: Announced) -> bool:
        """Call `look` with every command before it runs on the cluster.

        Returns False when the backend runs no commands, because the cluster is cockpit's own engine.
        """
        ...

    def identify(self, ids: RequestIds) -> bool:
        """Use these ids for the following changing operations, so that a repeated request takes effect only once.

        Returns False when the cluster does not remember request ids.
        """
        ...

    async def request(self, request: str) -> RequestOutcome:
        """Return the outcome of one of the user's own requests, by its id."""
        ...

    @property
    def takes_scripts(self) -> bool:
        """The cluster is controlled by commands of its own (Slurm's), and `direct` runs them."""
        ...

    @property
    def reads_this_disk(self) -> bool:
        """Jobs of the cluster see the folders of this machine."""
        ...

    async def written(self, spec: JobSpec) -> Shown | None:
        """Return the command that would submit the job.

        None when the cluster is cockpit's own, which starts the job as `launch.plan` describes. Raises `RequestRefused`
        for a job that `submit` would refuse.
        """
        ...

    async def direct(self, wanted: Directive) -> JobId | None:
        """Run a command of the cluster's own; return the id of the job that it submitted, if any.

        Refused when `takes_scripts` is False.
        """
        ...

    async def snapshot(self) -> Snapshot:
        """Return the cluster's present state as the scheduler needs it, without secrets. Administrators only."""
        ...

    async def status(self) -> EngineStatus: ...

    async def overview(self) -> Overview: ...

    async def clusters(self) -> list[ClusterRow]:
        """Return the member clusters of a fleet or a merged view; empty for a single cluster."""
        ...

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        """Return every live and held job in order of submission; with `ended` also the ended jobs in accounting."""
        ...

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        """Return the details of one job; `task` selects one task of the array `job`."""
        ...

    async def nodes(self) -> list[NodeRow]: ...

    async def holds(self) -> list[HoldRow]: ...

    async def rules(self) -> Cluster:
        """Return the cluster's rules as they are in force."""
        ...

    async def accounts(self) -> AccountsShown:
        """Return accounts, users and QOS; each parent comes before its children."""
        ...

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        """Return the jobs that ended from `since` on, until `until`; the newest first."""
        ...

    async def spending(self, edges: Sequence[Millis]) -> Spending:
        """Return the resources that jobs held in each interval between two `edges`, running jobs included."""
        ...

    async def change_accounts(self, change: AccountChange) -> None:
        """Apply the change immediately; a refusal has one line per error."""

    async def catalogue(self) -> CatalogueShown:
        """Return the catalogue (named images, volumes and the like of job files), as far as the user may see it."""
        ...

    async def change_catalogue(self, changes: Sequence[EntryChange]) -> None:
        """Apply all changes together or none; a refusal has one line per error."""

    async def queues(self) -> QueuesShown:
        """Return the quota tree, parents first, and the partitions."""
        ...

    async def apply_quota(self, tree: QuotaTree) -> None:
        """Put the quota tree in force immediately, in place of an earlier one. Administrators only."""

    async def remove_quota(self) -> None:
        """Remove the quota tree. Administrators only."""

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        """Return the queue in order of priority; with `weights`, also the order that these weights would give."""
        ...

    async def set_weights(self, weights: WeightChanges) -> WeightsSet:
        """Change the priority weights from now on. Administrators only; refused where the rules are fixed."""
        ...

    async def reservations(self) -> list[Reservation]:
        """Return the reservations in order of their start."""
        ...

    async def make_reservation(self, reservation: Reservation) -> None: ...

    async def end_reservation(self, name: str) -> None: ...

    async def drain_node(self, name: str, reason: str, within_seconds: int | None = None) -> None:
        """Start no more jobs on the node. Administrators only.

        Running jobs continue; with `within_seconds` they are warned and must have left the node by then.
        """

    async def resume_node(self, name: str) -> None:
        """Return a drained node to service. Administrators only."""

    async def staged(self) -> list[StagedCopy]:
        """Return the staged copies on the machines of this cluster. Administrators only."""
        ...

    async def unstage(self, key: str) -> None:
        """Remove a staged copy that no job uses; `key` may be the beginning of its key. Administrators only."""

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        """Explain why a queued job waits, when it starts, and which smaller or other request would start earlier."""
        ...

    async def starts(self, jobs: Sequence[JobId]) -> list[Expected]:
        """Return the expected starts of these queued jobs, at most 1000; jobs without an estimate are left out."""
        ...

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        """Predict when these jobs would start if they were submitted now; refused when `submit` would refuse them."""
        ...

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        """Return events, oldest first: those after sequence number `after`; when `after` < 0, the last `limit`."""
        ...

    def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        """Yield the whole job list in one or several deltas, then its changes as they happen, at most ten a second.

        `anything`: also yield an empty delta when something else in the cluster may have changed.
        """
        ...

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        """Submit all of the jobs or none; they are durable when this returns.

        A refusal has one line per error, which begins with the path of the wrong field.
        """
        ...

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        """Stop a job: signal it to end, and kill it after the grace period (None: the job's own).

        In this and the following methods an array's id means all its tasks, unless `task` selects one.
        """
        ...

    async def hold(self, job: JobId, *, task: int | None = None) -> None: ...

    async def release(self, job: JobId, *, task: int | None = None) -> None: ...

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        """Suspend a running job: its CPUs become free, its memory and cards do not."""
        ...

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        """Resume a suspended job; refused while other jobs use its CPUs."""
        ...

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        """Requeue a running or ended job under its own id."""
        ...

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        """Change the priority of a queued job; only administrators may give a number or an addition."""
        ...

    async def set_time_limit(self, job: JobId, limit: WantedLimit, *, task: int | None = None) -> None:
        """Change the time limit of a queued or running job; its container is not touched.

        Only administrators may exceed the limits that the rules set.
        """
        ...

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        """Replace the spec of a queued job, which keeps its id and its submission time."""
        ...

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        """Remove an ended job from the lists, with its logs and held container; its record in accounting stays."""
        ...

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        """Return the job once its command has ended, even if its container is held; None on time-out."""
        ...

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        """Extend the debug hold of a failed container; return its new end."""
        ...

    async def end_hold(self, job: JobId) -> None: ...

    async def logs(self, request: LogRequest) -> LogChunk: ...

    async def open_shell(self, request: ShellRequest) -> ShellSession: ...

    async def close(self) -> None: ...


class LiveBackend(Backend, Protocol):
    """A backend that maintains its connection: it reports a loss and reconnects, and `watch_jobs` never ends."""

    @property
    def connection(self) -> Connection:
        """Present state of the connection."""
        ...

    def connections(self) -> AsyncIterator[Connection]:
        """Yield the present connection state, then each change of its phase or reason. Never ends."""
        ...

    def overviews(self) -> AsyncIterator[Overview]:
        """Yield the overview, then again whenever it changes. Never ends."""
        ...
