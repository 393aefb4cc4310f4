"""What each operation takes and gives, but lists of jobs, which `pages` has. The names of the operations are in
`docs/protocol.md` with these fields.
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
"""A year of days."""


class NoArgs(msgspec.Struct, frozen=True):
    """For `status`, `overview`, `nodes`, `holds`, `rules`, `accounts`, `catalogue`, `queues`, `staged`,
    `remove_quota`."""


class AccountingArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """Jobs that ended within the time, its beginning included; without either bound, all."""

    since: int | None = None
    until: int | None = None
    user: str | None = None


class SpendingArgs(msgspec.Struct, frozen=True):
    edges: Annotated[tuple[int, ...], msgspec.Meta(min_length=2, max_length=MOST_EDGES)]
    """Where stretches of time begin, and where the last one ends."""


class PrioritiesArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    weights: WeightChanges | None = None
    """Others to try out: the order that they would give, beside the present one."""


class JobArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """For `job`, `explain`, `hold`, `release`, `suspend`, `resume`, `requeue`, `delete`, `end_hold`. An array's id
    means all its tasks to those of them that act, but `end_hold`."""

    job: int
    task: int | None = None
    """The index of a task in the array of `job`."""


class StartsArgs(msgspec.Struct, frozen=True):
    jobs: tuple[int, ...]


class PredictArgs(msgspec.Struct, frozen=True):
    specs: tuple[JobSpec, ...]
    """As they would be submitted together."""


class EditArgs(msgspec.Struct, frozen=True):
    job: int
    spec: JobSpec


class EventsArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    job: int | None = None
    after: int = -1
    """A sequence number; below 0: the last `limit`."""
    limit: int = 1000


class SubmitArgs(msgspec.Struct, frozen=True):
    specs: tuple[JobSpec, ...]


class CancelArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    job: int
    """A job, or an array with all its tasks."""
    grace_seconds: int | None = None
    task: int | None = None


class SetPriorityArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    job: int
    """A job, or an array with all its tasks."""
    priority: WantedPriority
    """A number or an addition only by an administrator."""
    task: int | None = None


class SetTimeLimitArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    job: int
    """A job, or an array with all its tasks."""
    limit: WantedLimit
    task: int | None = None


class SetWeightsArgs(msgspec.Struct, frozen=True):
    weights: WeightChanges


class ReservationArgs(msgspec.Struct, frozen=True):
    reservation: Reservation


class NameArgs(msgspec.Struct, frozen=True):
    """For `end_reservation`, `resume_node` and `unstage`."""

    name: str


class DrainArgs(msgspec.Struct, frozen=True):
    name: str
    reason: str
    within_seconds: int | None = None
    """Whoever runs there has so long to go; None: as long as it likes."""


class ExtendArgs(msgspec.Struct, frozen=True):
    job: int
    seconds: int


class WaitArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    job: int
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_SECONDS)] | None = None


class StopArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    jobs: bool = False
    """Stop every job first."""
    holds: bool = False
    """End every hold first."""


class ChangeAccountsArgs(msgspec.Struct, frozen=True):
    change: AccountChange


class ChangeCatalogueArgs(msgspec.Struct, frozen=True):
    changes: Annotated[tuple[EntryChange, ...], msgspec.Meta(max_length=MOST_ENTRIES)]
    """All of them or none."""


class ApplyQuotaArgs(msgspec.Struct, frozen=True):
    tree: QuotaTree


class RequestArgs(msgspec.Struct, frozen=True):
    request: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    """An id that the asker gave to an acting request."""


class Submitted(msgspec.Struct, frozen=True):
    ids: tuple[int, ...]


class HeldUntil(msgspec.Struct, frozen=True):
    held_until: int
