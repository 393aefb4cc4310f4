"""What a face may ask of any cluster. A "no" raises `RequestRefused`; nobody answering raises `Unreachable`."""

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
    """A command of a cluster, to be looked at before it is run."""

    argv: tuple[str, ...]
    stdin: str = ""
    """What it reads: of a submission the script."""


Announced = Callable[[Sequence[Shown]], Awaitable[bool]]
"""Sees the commands of an act before they are run; where it says no, `NotRun` is raised instead."""


class ShellSession(Protocol):
    """An entered container. The file descriptors belong to the caller."""

    notice: str
    """What a person should know on entry; empty for plain commands."""
    terminal_fd: int | None
    """Master side of the pseudo terminal, where one was asked for."""
    pipe_fds: tuple[int, int, int] | None
    """Else: write end of stdin, read ends of stdout and stderr."""
    control_fd: int
    """Readable when it has ended; closing it ends the shell."""

    def exit_code(self) -> int:
        """Blocks until the shell has ended; as a shell reports it."""
        ...


class JobsDelta(msgspec.Struct, frozen=True):
    """Rows that are new or changed, and ids that are gone, since the last one."""

    changed: tuple[JobRow, ...]
    removed: tuple[JobId, ...]
    version: int
    loaded: bool = True
    """False while more of the first load, or of a load after a lost connection, is to come."""


class Phase(StrEnum):
    """How a live connection stands."""

    CONNECTING = "connecting"
    """For the first time: nothing can be shown yet."""
    CONNECTED = "connected"
    STALE = "stale"
    """The cluster does not answer: what is shown is as old as `Connection.good_at`."""


class Connection(msgspec.Struct, frozen=True):
    """How fresh is what a face shows."""

    phase: Phase
    reason: str = ""
    """Why it is not connected, as a sentence."""
    good_at: Millis | None = None
    """When the cluster was last heard; None: never."""


class TypedLogin(Protocol):
    """A way in for which a person may have to type a password or a code."""

    @property
    def is_needed(self) -> bool:
        """The cluster refused the last attempt to connect without it."""
        ...

    def ask_at_terminal(self) -> None:
        """Ask for it, and return when the person is logged in. It blocks: the terminal must be free until then. Raises
        `Unreachable`."""
        ...


class Backend(Protocol):
    """One cluster."""

    def announce(self, look: Announced) -> bool:
        """Have `look` see every command before it is run on the cluster. False: no act runs one, the cluster is
        cockpit's own."""
        ...

    def identify(self, ids: RequestIds) -> bool:
        """Take the ids of the acts that follow from here, so that a repeated command happens once. False: this cluster
        remembers none."""
        ...

    async def request(self, request: str) -> RequestOutcome:
        """What became of a request of the asker's own, by its id."""
        ...

    @property
    def takes_scripts(self) -> bool:
        """It is acted on by commands of its own, so that `direct` does something."""
        ...

    @property
    def reads_this_disk(self) -> bool:
        """Its jobs see the folders of this machine."""
        ...

    async def written(self, spec: JobSpec) -> Shown | None:
        """What would submit the job; None: the cluster is cockpit's own, which starts it as `launch.plan` says. Raises
        `RequestRefused` as `submit` would."""
        ...

    async def direct(self, wanted: Directive) -> JobId | None:
        """The new job's id, where one is submitted. Refused where `takes_scripts` is not so."""
        ...

    async def snapshot(self) -> Snapshot:
        """Everything that the core needs of the cluster as it is now, without secrets. Administrators only."""
        ...

    async def status(self) -> EngineStatus: ...

    async def overview(self) -> Overview: ...

    async def clusters(self) -> list[ClusterRow]:
        """Those that it consists of, where it is several in one."""
        ...

    async def jobs(self, *, ended: bool = False) -> Sequence[JobRow]:
        """Every live and held job in order of submission; with `ended` also those in accounting."""
        ...

    async def job(self, job: JobId, *, task: int | None = None) -> JobDetail:
        """With `task` that one of the array which `job` names."""
        ...

    async def nodes(self) -> list[NodeRow]: ...

    async def holds(self) -> list[HoldRow]: ...

    async def rules(self) -> Cluster:
        """The cluster's rules as they are in force."""
        ...

    async def accounts(self) -> AccountsShown:
        """Accounts, users and QOS, parents before what is below them."""
        ...

    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[EndedJob]:
        """Jobs that ended within the time, its beginning included; the newest first."""
        ...

    async def spending(self, edges: Sequence[Millis]) -> Spending:
        """What was held in each stretch of time between two edges, running jobs included."""
        ...

    async def change_accounts(self, change: AccountChange) -> None:
        """At once; refused with one line per error."""

    async def catalogue(self) -> CatalogueShown:
        """What names in job files stand for, as the asker may see it."""
        ...

    async def change_catalogue(self, changes: Sequence[EntryChange]) -> None:
        """All at once or none of it; refused with one line per error."""

    async def queues(self) -> QueuesShown:
        """The quota tree, parents first, and the partitions."""
        ...

    async def apply_quota(self, tree: QuotaTree) -> None:
        """At once, in place of an earlier tree of its name. Administrators only."""

    async def remove_quota(self) -> None:
        """Administrators only."""

    async def priorities(self, weights: WeightChanges | None = None) -> Priorities:
        """The queue in its order; with `weights` as it would be, beside the order that it has."""
        ...

    async def set_weights(self, weights: WeightChanges) -> WeightsSet:
        """Other weights in force from now on. Administrators only; refused where the rules are fixed."""
        ...

    async def reservations(self) -> list[Reservation]:
        """The first to begin first."""
        ...

    async def make_reservation(self, reservation: Reservation) -> None: ...

    async def end_reservation(self, name: str) -> None: ...

    async def drain_node(self, name: str, reason: str, within_seconds: int | None = None) -> None:
        """Nothing more starts there; what runs goes on, or is told and has so many seconds to go. Administrators only,
        as is `resume_node`."""

    async def resume_node(self, name: str) -> None: ...

    async def staged(self) -> list[StagedCopy]:
        """Copies on the machines of this cluster. Administrators only, as is `unstage`."""
        ...

    async def unstage(self, key: str) -> None:
        """Remove a copy that nobody uses; `key` may be the beginning of its key."""

    async def explain(self, job: JobId, *, task: int | None = None) -> Outlook:
        """Why a queued job waits, when it starts, and what it could ask for instead."""
        ...

    async def starts(self, jobs: Sequence[JobId]) -> list[Expected]:
        """When these queued jobs likely start, as far as somebody can say; at most a thousand at once."""
        ...

    async def predict(self, specs: Sequence[JobSpec]) -> list[Outlook]:
        """When these would start if they were submitted now; refused as `submit` would."""
        ...

    async def events(self, *, job: JobId | None = None, after: int = -1, limit: int = 1000) -> list[EventRecord]:
        """Oldest first; `after` < 0: the last `limit`."""
        ...

    def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        """First everything, in one or several deltas, then changes as they happen, at most ten a second."""
        ...

    async def submit(self, specs: Sequence[JobSpec]) -> list[JobId]:
        """All or none, durable when this returns. Refused with one line per error, each led by its path."""
        ...

    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        """Stop: ask to end, kill after the grace period (None: the job's own). Here and in what follows an array's id
        means all its tasks, unless `task` names one."""
        ...

    async def hold(self, job: JobId, *, task: int | None = None) -> None: ...

    async def release(self, job: JobId, *, task: int | None = None) -> None: ...

    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        """Have a running job stand still: its CPUs come free, its memory and cards do not."""
        ...

    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        """Let it go on; refused while others have its CPUs."""
        ...

    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        """Have a job that runs or has ended begin anew, under its id."""
        ...

    async def set_priority(self, job: JobId, priority: WantedPriority, *, task: int | None = None) -> None:
        """Of a queued job; a number or an addition only by administrators."""
        ...

    async def set_time_limit(self, job: JobId, limit: WantedLimit, *, task: int | None = None) -> None:
        """Of a queued or running job, without its container noticing. Beyond the rules only by administrators."""
        ...

    async def edit(self, job: JobId, spec: JobSpec) -> None:
        """Let a queued job ask for something else; it keeps its id and its place."""
        ...

    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        """Take an ended job off the lists; what is kept of it goes, its record in accounting stays."""
        ...

    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> Job | None:
        """The job once its command has ended (also when its container is kept); None on time-out."""
        ...

    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        """Lengthen the window; the new end."""
        ...

    async def end_hold(self, job: JobId) -> None: ...

    async def logs(self, request: LogRequest) -> LogChunk: ...

    async def open_shell(self, request: ShellRequest) -> ShellSession: ...

    async def close(self) -> None: ...


class LiveBackend(Backend, Protocol):
    """A backend that keeps its connection by itself: `watch_jobs` never ends, a loss is reported and mended."""

    @property
    def connection(self) -> Connection:
        """As of now."""
        ...

    def connections(self) -> AsyncIterator[Connection]:
        """The connection as it stands, then whenever its phase or reason changes. Never ends."""
        ...

    def overviews(self) -> AsyncIterator[Overview]:
        """The overview whenever it changes. Never ends."""
        ...
