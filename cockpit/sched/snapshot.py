"""What the scheduler decides on: a read-only, versioned view of the cluster's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cockpit.model.accounts import Accounts, AssocKey, Usage
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import Node, Placement
from cockpit.model.quota import QuotaTree

Highest = Mapping[JobId, Mapping[str, int]]
"""By job and partition: the priority below which it does not fall."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Looks into the engine's state without copying it; valid until the engine handles its next event."""

    version: int
    """Grows with every change of the state."""
    now: Millis
    nodes: Mapping[NodeName, Node]
    """Their order breaks ties; a node's cards stand in the order of their index."""
    nodes_version: int
    """Changes whenever `nodes` does."""
    queue: Sequence[Job]
    """Queued jobs in order of submission, held ones included."""
    occupied: Mapping[JobId, Placement]
    """Everything that holds resources now. A kept container that keeps its cards has 0 CPUs and 0 MiB."""
    ends: Mapping[JobId, Millis]
    """When each of them is gone at the latest, by time limit or end of hold. Absent: nobody knows, counted as never."""
    changes: Sequence[tuple[JobId, Placement | None]]
    """What happened to `occupied` and `ends` since version `changes_from`, in order; None: released."""
    changes_from: int
    touched: Sequence[JobId] | None = None
    """The jobs that changed since version `changes_from`, queued or not; None: nobody knows."""
    promised: Sequence[JobId] = ()
    """Queued jobs for which others were made to go, in order of submission: the room is theirs."""
    suspended: Sequence[JobId] = ()
    """Jobs that stand still."""
    elastic: Sequence[JobId] = ()
    """Elastic jobs that hold something, by id."""
    jobs: Mapping[JobId, Job] = {}
    """Every live job, queued and running."""
    cluster: Cluster = Cluster()
    accounts: Accounts = Accounts()
    rules_version: int = 0
    """Changes whenever `cluster`, `accounts`, `reservations` or `quota` do."""
    reservations: Mapping[str, Reservation] = {}
    quota: QuotaTree | None = None
    usage: Mapping[AssocKey, Usage] = {}
    qos_usage: Mapping[str, Usage] = {}
    usage_at: Millis = Millis(0)
    """The last pass over usage: ages count to it. `usage` is another mapping whenever it says something else."""
    freed_at: Mapping[str, Millis] = {}
    """On a fleet, by member: when something last came free there."""
    highest: Highest = {}
    """Under INCREMENT_ONLY what priorities have been; it says something else only when `usage`, the rules or the nodes
    do, or a job."""
