"""The input of the scheduler: a read-only, versioned view of the cluster's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from cockpit.model.accounts import Accounts, AssocKey, Usage
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import Node, Placement
from cockpit.model.quota import QuotaTree

Highest = Mapping[JobId, Mapping[str, int]]
"""The priority below which a job may not fall, by job and partition."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A view into the engine's state without a copy, valid until the engine handles its next event. Code that
    reads it later takes `frozen()`: a plan answers questions long after it was made."""

    version: int
    """Grows with every change of the state."""
    now: Millis
    nodes: Mapping[NodeName, Node]
    """The nodes; their order breaks ties. A node's cards are in the order of their index."""
    nodes_version: int
    """Changes whenever `nodes` does."""
    excluded: frozenset[NodeName] = frozenset()
    """The nodes that are excluded for some jobs; `nodes_version` changes with them too."""
    queue: Sequence[Job]
    """Queued jobs in order of submission, held ones included."""
    occupied: Mapping[JobId, Placement]
    """The placement that each job holds now. A held container that keeps its cards has 0 CPUs and 0 MiB."""
    ends: Mapping[JobId, Millis]
    """The latest end of each job that holds resources, by its time limit or the end of its hold. Absent: not known,
    taken as never."""
    changes: Sequence[tuple[JobId, Placement | None]]
    """The changes of `occupied` and `ends` since version `changes_from`, in order; None: released."""
    changes_from: int
    touched: Sequence[JobId] | None = None
    """The jobs that changed since version `changes_from`, queued or not; None: not known."""
    nominated: Sequence[JobId] = ()
    """Nominated jobs: queued jobs for which others were evicted, in order of submission. The freed resources are
    reserved for them."""
    suspended: Sequence[JobId] = ()
    """Suspended jobs."""
    elastic: Sequence[JobId] = ()
    """Elastic jobs that hold resources, by id."""
    jobs: Mapping[JobId, Job] = {}
    """The live jobs, queued and running, by id."""
    cluster: Cluster = Cluster()
    accounts: Accounts = Accounts()
    rules_version: int = 0
    """Changes whenever `cluster`, `accounts`, `reservations` or `quota` do."""
    reservations: Mapping[str, Reservation] = {}
    quota: QuotaTree | None = None
    usage: Mapping[AssocKey, Usage] = {}
    qos_usage: Mapping[str, Usage] = {}
    usage_at: Millis = Millis(0)
    """The last update of usage; ages count to it. `usage` is another mapping whenever its content changes."""
    freed_at: Mapping[str, Millis] = {}
    """The last moment at which something came free on each member of a fleet."""
    highest: Highest = {}
    """The minimum priorities under INCREMENT_ONLY. They change only with `usage`, the rules, the nodes, or a job."""

    def frozen(self) -> Snapshot:
        """Return a snapshot that no later event changes: half a millisecond for 100 000 jobs. Records are frozen, so
        only the mappings are copied; the accounts and their usage are replaced by the engine, never changed."""
        return replace(
            self,
            nodes=dict(self.nodes),
            queue=tuple(self.queue),
            occupied=dict(self.occupied),
            ends=dict(self.ends),
            jobs=dict(self.jobs),
            reservations=dict(self.reservations),
            qos_usage=dict(self.qos_usage),
        )
