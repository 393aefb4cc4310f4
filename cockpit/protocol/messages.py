"""The arguments and results of each operation of the protocol, except for lists of jobs, which are in `pages`.

`docs/protocol.md` lists the operations with these fields.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from cockpit.model.accountchange import AccountChange
from cockpit.model.asking import WantedLimit, WantedPriority
from cockpit.model.catalogue import MOST_ENTRIES, EntryChange
from cockpit.model.cluster import Reservation
from cockpit.model.priority import WeightChanges
from cockpit.model.quota import QuotaTree
from cockpit.model.spec import JobSpec

LONGEST_WAIT_SECONDS = 1e9
MOST_EDGES = 400
"""The most edges of `SpendingArgs`: enough for the days of a year."""


class NoArgs(msgspec.Struct, frozen=True):
    """The arguments of operations that have none: `status`, `overview`, `nodes`, `holds`, `rules`, `accounts`,
    `catalogue`, `queues`, `staged`, `remove_quota`."""


class AccountingArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `accounting`: jobs that ended in [`since`, `until`), in milliseconds UTC, of one user or all."""

    since: int | None = None
    """The beginning; None: from the first job on."""
    until: int | None = None
    """The end, which is not included; None: now."""
    user: str | None = None


class SpendingArgs(msgspec.Struct, frozen=True):
    """The arguments of `spending`: the intervals of time for which usage is summed up."""

    edges: Annotated[tuple[int, ...], msgspec.Meta(min_length=2, max_length=MOST_EDGES)]
    """The beginnings of the intervals and the end of the last one, in milliseconds UTC."""


class PrioritiesArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `priorities`."""

    weights: WeightChanges | None = None
    """Changed weights to try out, whose order the rows are in; None: the present weights."""


class JobArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `job`, `explain`, `hold`, `release`, `suspend`, `resume`, `requeue`, `delete` and `end_hold`.

    For those that change jobs, except `end_hold`, the id of an array means all its tasks.
    """

    job: int
    task: int | None = None
    """The index of a task in the array of `job`; None: no task is meant."""


class FleetArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `fleet`: which rows of a fleet's table are returned."""

    job: int | None = None
    """The job whose rows are returned; None: those of all jobs."""
    pods: bool = False
    """Whether the pods are returned in place of the jobs."""
    jobs: tuple[int, ...] = ()
    """Return the rows of these jobs alone, without those that are gone; empty: as `job` says."""


class OwnObjectArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `own_object`: a job, and on a fleet the member whose object is returned."""

    job: int
    cluster: str = ""
    """The name of the member; empty: the object of the cluster that is asked, or of the only member that has one."""


class StartsArgs(msgspec.Struct, frozen=True):
    """The arguments of `starts`: the queued jobs whose starts are predicted."""

    jobs: tuple[int, ...]


class PredictArgs(msgspec.Struct, frozen=True):
    """The arguments of `predict`: specs whose start is predicted as if they were submitted together."""

    specs: tuple[JobSpec, ...]


class EditArgs(msgspec.Struct, frozen=True):
    """The arguments of `edit`: a queued job and its new spec."""

    job: int
    spec: JobSpec


class EventsArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `events`."""

    job: int | None = None
    """The job whose events are returned; None: all."""
    after: int = -1
    """The sequence number after which events are returned; below 0: the last `limit` events."""
    limit: int = 1000
    rank: int | None = None
    """On a fleet: return instead what the member reports that has this replica of the job, with the member's own
    sequence numbers. Elsewhere the job's events are those of its replicas."""


class SubmitArgs(msgspec.Struct, frozen=True):
    """The arguments of `submit`: jobs that are accepted all together or not at all."""

    specs: tuple[JobSpec, ...]


class CancelArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `cancel`."""

    job: int
    """A job, or an array with all its tasks."""
    grace_seconds: int | None = None
    """The grace period; 0: kill at once; None: the job's own."""
    task: int | None = None


class SetPriorityArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `set_priority`."""

    job: int
    """A job, or an array with all its tasks."""
    priority: WantedPriority
    """The priority. Only an administrator may give a number or an addition."""
    task: int | None = None


class SetTimeLimitArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `set_time_limit`."""

    job: int
    """A job, or an array with all its tasks."""
    limit: WantedLimit
    task: int | None = None


class SetWeightsArgs(msgspec.Struct, frozen=True):
    """The arguments of `set_weights`."""

    weights: WeightChanges


class ReservationArgs(msgspec.Struct, frozen=True):
    """A reservation to be made."""

    reservation: Reservation


class NameArgs(msgspec.Struct, frozen=True):
    """The arguments of `end_reservation`, `resume_node` and `unstage`: the name of what they act on."""

    name: str


class DrainArgs(msgspec.Struct, frozen=True):
    """A node to be drained, and why."""

    name: str
    reason: str
    within_seconds: int | None = None
    """The time after which jobs that still run there are ended; None: they may run to their ends."""


class ExtendArgs(msgspec.Struct, frozen=True):
    """A job whose debug hold is extended, and by how much."""

    job: int
    seconds: int


class UnblockArgs(msgspec.Struct, frozen=True):
    """An elastic job, and the node that is taken off its block list."""

    job: int
    node: str


class WaitArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `wait`."""

    job: int
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_SECONDS)] | None = None
    """The longest wait; None: until the job ends."""


class StopArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the engine is to be stopped."""

    jobs: bool = False
    """Whether every job is stopped first."""
    holds: bool = False
    """Whether every debug hold is ended first."""


class ChangeAccountsArgs(msgspec.Struct, frozen=True):
    """One change of accounts, users or QOS."""

    change: AccountChange


class ChangeCatalogueArgs(msgspec.Struct, frozen=True):
    """Changes of the catalogue, which are made all together or not at all."""

    changes: Annotated[tuple[EntryChange, ...], msgspec.Meta(max_length=MOST_ENTRIES)]


class ApplyQuotaArgs(msgspec.Struct, frozen=True):
    """A tree of quotas to be applied."""

    tree: QuotaTree


class RequestArgs(msgspec.Struct, frozen=True):
    """A question for the outcome of an earlier request."""

    request: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    """The id that the client gave to that request."""


class Submitted(msgspec.Struct, frozen=True):
    """The ids of the jobs that a request submitted, in order."""

    ids: tuple[int, ...]


class HeldUntil(msgspec.Struct, frozen=True):
    """The new end of a debug hold, in milliseconds UTC."""

    held_until: int
