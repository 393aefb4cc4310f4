"""The operations of a backend, each declared once: arguments, result, right, and whether it changes anything.

The engine's socket (`runtime.operations`), its clients (`backends.base`), the blocking client and the check of rights
are derived from these declarations, so a new operation needs one method here and its arguments in `messages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.late import LazyModule
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.operations import Operation, Right, Style, operation, operations_of

if TYPE_CHECKING:
    from cockpit.formats import snapshotfile
    from cockpit.model import (
        accountchange,
        asking,
        cluster,
        fleetrow,
        forecast,
        jobdetail,
        jobrow,
        priority,
        quota,
        requests,
        spec,
        staging,
        view,
    )
    from cockpit.model import accounting as accounting_model
    from cockpit.model import catalogue as catalogue_model
    from cockpit.model import events as events_model
    from cockpit.model import job as job_model
    from cockpit.protocol import messages, pages
else:
    # Every command imports this table, and most need few of these modules: each is imported when it is first used, so
    # that a command starts in a tenth of a second. The lambdas below put off the look-up for the same reason.
    accountchange, asking, cluster = (
        LazyModule(f"cockpit.model.{name}") for name in ("accountchange", "asking", "cluster")
    )
    fleetrow = LazyModule("cockpit.model.fleetrow")
    forecast, jobdetail, jobrow = (LazyModule(f"cockpit.model.{name}") for name in ("forecast", "jobdetail", "jobrow"))
    priority, quota, requests = (LazyModule(f"cockpit.model.{name}") for name in ("priority", "quota", "requests"))
    spec, staging, view = (LazyModule(f"cockpit.model.{name}") for name in ("spec", "staging", "view"))
    accounting_model, catalogue_model = LazyModule("cockpit.model.accounting"), LazyModule("cockpit.model.catalogue")
    events_model, job_model = LazyModule("cockpit.model.events"), LazyModule("cockpit.model.job")
    snapshotfile = LazyModule("cockpit.formats.snapshotfile")
    messages, pages = LazyModule("cockpit.protocol.messages"), LazyModule("cockpit.protocol.pages")

Pieces = Iterable[bytes | msgspec.Raw]


def _none() -> type[msgspec.Struct]:
    return messages.NoArgs


def _whole_job_list(encoded: Pieces) -> jobrow.JobRows:
    return pages.rows_of_all(encoded)


def _whole_queue(encoded: Pieces) -> view.Priorities:
    return pages.whole_list(msgspec.msgpack.decode(each, type=view.Priorities) for each in encoded)


def _whole_snapshot(encoded: Pieces) -> snapshotfile.Snapshot:
    """Decode a snapshot whose encoded form was cut into pieces that fit a frame."""
    # Cut without regard to its structure, so that no piece can be decoded by itself.
    whole = b"".join(msgspec.msgpack.decode(each, type=bytes) for each in encoded)
    return msgspec.msgpack.decode(whole, type=snapshotfile.Snapshot)


class Operations:
    """The operations of a cluster that are one request with one answer.

    Every method may raise `RequestRefused` when the cluster refuses the request, and `Unreachable` when it does not
    answer.
    """

    async def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the operation
        """Carry out an operation with the arguments of a call, by parameter, and return its result."""
        raise NotImplementedError

    @operation(Right.ASK, Style.READS, lambda: messages.RequestArgs)
    async def request(self, request: str) -> requests.RequestOutcome:
        """Return the outcome of one of the user's own requests, by its id."""

    @operation(Right.ADMINISTER, Style.LISTS, _none, join=_whole_snapshot)
    async def snapshot(self) -> snapshotfile.Snapshot:
        """Return the cluster's present state as the scheduler needs it, without secrets. Administrators only."""

    @operation(Right.ASK, Style.READS, _none)
    async def status(self) -> view.EngineStatus: ...

    @operation(Right.ASK, Style.READS, _none)
    async def overview(self) -> view.Overview: ...

    @operation(Right.ASK, Style.LISTS, lambda: pages.JobsArgs, constant={"brief": True}, join=_whole_job_list)
    async def jobs(self, *, ended: bool = False) -> Sequence[jobrow.JobRow]:
        """Return every live and held job in order of submission; with `ended` also the ended jobs in accounting."""

    @operation(Right.LOOK, Style.READS, lambda: messages.JobArgs)
    async def job(self, job: JobId, *, task: int | None = None) -> jobdetail.JobDetail:
        """Return the details of one job; `task` selects one task of the array `job`."""

    @operation(Right.ASK, Style.READS, _none)
    async def nodes(self) -> list[view.NodeRow]: ...

    @operation(Right.ASK, Style.READS, _none)
    async def holds(self) -> list[view.HoldRow]: ...

    @operation(Right.ASK, Style.READS, lambda: messages.FleetArgs)
    async def fleet(
        self, *, job: JobId | None = None, pods: bool = False, jobs: Sequence[JobId] = ()
    ) -> fleetrow.FleetShown:
        """Return the table of a fleet: jobs over all members, or with `pods` their pods; `job`: of this job alone.

        `jobs`: of these alone, without those that are gone; each member is asked once for all of them.
        """

    @operation(Right.LOOK, Style.READS, lambda: messages.OwnObjectArgs)
    async def own_object(self, job: JobId, *, cluster: str = "") -> fleetrow.MemberObject:
        """Return the complete object that the cluster itself has of a job; on a fleet that of the member `cluster`."""

    @operation(Right.ASK, Style.READS, _none)
    async def rules(self) -> cluster.Cluster:
        """Return the cluster's rules as they are in force."""

    @operation(Right.ASK, Style.READS, _none)
    async def accounts(self) -> view.AccountsShown:
        """Return accounts, users and QOS; each parent comes before its children."""

    @operation(Right.ASK, Style.LISTS, lambda: messages.AccountingArgs)
    async def accounting(
        self, *, since: Millis | None = None, until: Millis | None = None, user: str | None = None
    ) -> list[accounting_model.EndedJob]:
        """Return the jobs that ended from `since` on, until `until`; the newest first."""

    @operation(Right.ASK, Style.READS, lambda: messages.SpendingArgs)
    async def spending(self, edges: Sequence[Millis]) -> accounting_model.Spending:
        """Return the resources that jobs held in each interval between two `edges`, running jobs included."""

    @operation(Right.ASK, Style.CHANGES, lambda: messages.ChangeAccountsArgs)
    async def change_accounts(self, change: accountchange.AccountChange) -> None:
        """Apply the change immediately; a refusal has one line per error."""

    @operation(Right.ASK, Style.READS, _none)
    async def catalogue(self) -> catalogue_model.CatalogueShown:
        """Return the catalogue (named images, volumes and the like of job files), as far as the user may see it."""

    @operation(Right.ASK, Style.CHANGES, lambda: messages.ChangeCatalogueArgs)
    async def change_catalogue(self, changes: Sequence[catalogue_model.EntryChange]) -> None:
        """Apply all changes together or none; a refusal has one line per error."""

    @operation(Right.ASK, Style.READS, _none)
    async def queues(self) -> view.QueuesShown:
        """Return the quota tree, parents first, and the partitions."""

    @operation(Right.ADMINISTER, Style.CHANGES, lambda: messages.ApplyQuotaArgs)
    async def apply_quota(self, tree: quota.QuotaTree) -> None:
        """Put the quota tree in force immediately, in place of an earlier one. Administrators only."""

    @operation(Right.ADMINISTER, Style.CHANGES, _none)
    async def remove_quota(self) -> None:
        """Remove the quota tree. Administrators only."""

    @operation(Right.ASK, Style.LISTS, lambda: messages.PrioritiesArgs, join=_whole_queue)
    async def priorities(self, weights: priority.WeightChanges | None = None) -> view.Priorities:
        """Return the queue in order of priority; with `weights`, also the order that these weights would give."""

    @operation(Right.ADMINISTER, Style.CHANGES, lambda: messages.SetWeightsArgs)
    async def set_weights(self, weights: priority.WeightChanges) -> view.WeightsSet:
        """Change the priority weights from now on. Administrators only; refused where the rules are fixed."""

    @operation(Right.ASK, Style.READS, _none)
    async def reservations(self) -> list[cluster.Reservation]:
        """Return the reservations in order of their start."""

    @operation(Right.ADMINISTER, Style.CHANGES, lambda: messages.ReservationArgs)
    async def make_reservation(self, reservation: cluster.Reservation) -> None: ...

    @operation(Right.ADMINISTER, Style.CHANGES, lambda: messages.NameArgs)
    async def end_reservation(self, name: str) -> None: ...

    @operation(Right.ADMINISTER, Style.CHANGES, lambda: messages.DrainArgs)
    async def drain_node(self, name: str, reason: str, within_seconds: int | None = None) -> None:
        """Start no more jobs on the node. Administrators only.

        Running jobs continue; with `within_seconds` they are warned and must have left the node by then.
        """

    @operation(Right.ADMINISTER, Style.CHANGES, lambda: messages.NameArgs)
    async def resume_node(self, name: str) -> None:
        """Return a drained node to service. Administrators only."""

    @operation(Right.ADMINISTER, Style.READS, _none)
    async def staged(self) -> list[staging.StagedCopy]:
        """Return the staged copies on the machines of this cluster. Administrators only."""

    @operation(Right.ADMINISTER, Style.CHANGES, lambda: messages.NameArgs)
    async def unstage(self, name: str) -> None:
        """Remove a staged copy that no job uses; `name` is its key or the beginning of it. Administrators only."""

    @operation(Right.LOOK, Style.WAITS, lambda: messages.JobArgs)
    async def explain(self, job: JobId, *, task: int | None = None) -> forecast.Outlook:
        """Explain why a queued job waits, when it starts, and which smaller or other request would start earlier."""

    @operation(Right.ASK, Style.WAITS, lambda: messages.StartsArgs)
    async def starts(self, jobs: Sequence[JobId]) -> list[forecast.ExpectedStart]:
        """Return the expected starts of these queued jobs, at most 1000; jobs without an estimate are left out."""

    @operation(Right.ASK, Style.WAITS, lambda: messages.PredictArgs)
    async def predict(self, specs: Sequence[spec.JobSpec]) -> list[forecast.Outlook]:
        """Predict when these jobs would start if they were submitted now; refused when `submit` would refuse them."""

    @operation(Right.LOOK, Style.LISTS, lambda: messages.EventsArgs)
    async def events(
        self, *, job: JobId | None = None, after: int = -1, limit: int = 1000, rank: int | None = None
    ) -> list[events_model.EventRecord]:
        """Return events, oldest first: those after sequence number `after`; when `after` < 0, the last `limit`.

        `rank`: on a fleet those that the member reports which has this replica, with that member's numbers.
        """

    @operation(Right.ASK, Style.CHANGES, lambda: messages.SubmitArgs, wrapped=lambda: messages.Submitted)
    async def submit(self, specs: Sequence[spec.JobSpec]) -> list[JobId]:
        """Submit all of the jobs or none; they are durable when this returns.

        A refusal has one line per error, which begins with the path of the wrong field.
        """

    @operation(Right.ACT, Style.CHANGES, lambda: messages.CancelArgs)
    async def cancel(self, job: JobId, *, task: int | None = None, grace_seconds: int | None = None) -> None:
        """Stop a job: signal it to end, and kill it after the grace period (None: the job's own).

        In this and the following methods an array's id means all its tasks, unless `task` selects one.
        """

    @operation(Right.ACT, Style.CHANGES, lambda: messages.JobArgs)
    async def hold(self, job: JobId, *, task: int | None = None) -> None: ...

    @operation(Right.ACT, Style.CHANGES, lambda: messages.JobArgs)
    async def release(self, job: JobId, *, task: int | None = None) -> None: ...

    @operation(Right.ACT, Style.CHANGES, lambda: messages.JobArgs)
    async def suspend(self, job: JobId, *, task: int | None = None) -> None:
        """Suspend a running job: its CPUs become free, its memory and cards do not."""

    @operation(Right.ACT, Style.CHANGES, lambda: messages.JobArgs)
    async def resume(self, job: JobId, *, task: int | None = None) -> None:
        """Resume a suspended job; refused while other jobs use its CPUs."""

    @operation(Right.ACT, Style.CHANGES, lambda: messages.JobArgs)
    async def requeue(self, job: JobId, *, task: int | None = None) -> None:
        """Requeue a running or ended job under its own id."""

    @operation(Right.ACT, Style.CHANGES, lambda: messages.UnblockArgs)
    async def unblock(self, job: JobId, node: NodeName) -> None:
        """Take a node off the block list of an elastic job, whose workers may then run there again."""

    @operation(Right.ACT, Style.CHANGES, lambda: messages.SetPriorityArgs)
    async def set_priority(self, job: JobId, priority: asking.WantedPriority, *, task: int | None = None) -> None:
        """Change the priority of a queued job; only administrators may give a number or an addition."""

    @operation(Right.ACT, Style.CHANGES, lambda: messages.SetTimeLimitArgs)
    async def set_time_limit(self, job: JobId, limit: asking.WantedLimit, *, task: int | None = None) -> None:
        """Change the time limit of a queued or running job; its container is not touched.

        Only administrators may exceed the limits that the rules set.
        """

    @operation(Right.ACT, Style.CHANGES, lambda: messages.EditArgs)
    async def edit(self, job: JobId, spec: spec.JobSpec) -> None:
        """Replace the spec of a queued job, which keeps its id and its submission time."""

    @operation(Right.ACT, Style.CHANGES, lambda: messages.JobArgs)
    async def delete(self, job: JobId, *, task: int | None = None) -> None:
        """Remove an ended job from the lists, with its logs and held container; its record in accounting stays."""

    @operation(Right.LOOK, Style.WAITS, lambda: messages.WaitArgs)
    async def wait(self, job: JobId, *, timeout_seconds: float | None = None) -> job_model.Job | None:
        """Return the job once its command has ended, even if its container is held; None on time-out."""

    @operation(Right.ACT, Style.CHANGES, lambda: messages.ExtendArgs, wrapped=lambda: messages.HeldUntil)
    async def extend_hold(self, job: JobId, *, seconds: int) -> Millis:
        """Extend the debug hold of a failed container; return its new end."""

    @operation(Right.ACT, Style.CHANGES, lambda: messages.JobArgs)
    async def end_hold(self, job: JobId) -> None: ...

    @operation(Right.LOOK, Style.WAITS, lambda: asking.LogRequest)
    async def logs(self, request: asking.LogRequest) -> asking.LogChunk: ...

    @operation(Right.LOOK, Style.WAITS, lambda: asking.LogSearch)
    async def search_log(self, request: asking.LogSearch) -> asking.LogMatches:
        """Search a part of a replica's log where the file is."""


SHELL = "shell"
TABLE: Mapping[str, Operation] = MappingProxyType(
    {
        row.name: row
        for row in (
            *operations_of(Operations),
            # `Backend.watch_jobs`, `Backend.open_shell` and `LocalBackend.stop`: a stream of answers, file descriptors,
            # and the end of the engine that would answer are not one request with one answer.
            Operation("subscribe", Right.ASK, Style.SPECIAL, lambda: pages.SubscribeArgs),
            Operation(SHELL, Right.ACT, Style.SPECIAL, lambda: asking.ShellRequest),
            Operation("stop", Right.ADMINISTER, Style.SPECIAL, lambda: messages.StopArgs),
        )
    }
)
"""All operations by their names on the wire."""
