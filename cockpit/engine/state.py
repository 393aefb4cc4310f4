"""The state of the cluster: the result of all events of the journal. Only `engine.machine` changes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from cockpit.model.accounts import Accounts, AssocKey, Usage
from cockpit.model.catalogue import AnyEntry, EntryKey
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import Node, Placement
from cockpit.model.quota import QuotaTree

STATE_VERSION = 4
"""The version of stored snapshots. A snapshot of another version is ignored, and all events are applied again.

Raise it when the effect of an event on the state changes: version 2 introduced the age of jobs.
"""


_BEFORE_ALL = Millis(0)


@dataclass(slots=True, kw_only=True)  # every event writes to it, which takes a Struct five times as long
class ClusterState:
    """The whole state as plain data. A stored snapshot is its encoding; nothing in it is derived from another field.

    Fields described as "replaced as a whole" get a new dictionary with each change, since scheduler snapshots share
    the old one. All other dictionaries are changed in place.
    """

    version: int = STATE_VERSION
    seq: int = 0
    """Sequence number of the last event applied."""
    at: Millis = _BEFORE_ALL
    """Time of the last event applied; the engine's clock never starts before it."""
    last_job_id: int = 0
    nodes: dict[NodeName, Node] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    """Live jobs, and ended ones until they are archived, in order of submission."""
    cluster: Cluster = field(default_factory=Cluster)
    accounts: Accounts = field(default_factory=Accounts)
    catalogue: dict[EntryKey, AnyEntry] = field(default_factory=dict)
    """Images, data sets and other catalogue entries. Replaced as a whole."""
    reservations: dict[str, Reservation] = field(default_factory=dict)
    quota: QuotaTree | None = None
    queues_since: dict[str, Millis] = field(default_factory=dict)
    """When each node of the quota tree was added, by its path."""
    usage: dict[AssocKey, Usage] = field(default_factory=dict)
    """Decayed usage by association. That of an account includes its users and subaccounts. Replaced as a whole."""
    qos_usage: dict[str, Usage] = field(default_factory=dict)
    """Decayed usage by QOS. Replaced as a whole."""
    usage_at: Millis = _BEFORE_ALL
    """When usage was last decayed; the ages of jobs count up to this moment."""
    usage_reset_at: Millis = _BEFORE_ALL
    """When usage was last reset to zero, or its first period began; 0: before the first decay."""
    highest: dict[JobId, dict[str, int]] = field(default_factory=dict)
    """With Slurm's PriorityFlags=INCREMENT_ONLY: the priority of each queued job in each partition, below which it must
    not fall. Replaced as a whole."""
    others: dict[str, tuple[Placement, ...]] = field(default_factory=dict)
    """On a fleet: for each member, the placements of jobs that were submitted there directly. Replaced as a whole."""
    freed_at: dict[str, Millis] = field(default_factory=dict)
    """On a fleet: when resources were last released on each member. Replaced as a whole."""
    failed_prechecks: dict[NodeName, dict[JobId, Millis]] = field(default_factory=dict)
    """For each node, the jobs for which it is excluded, and until when; such a job may have been archived already.
    Replaced as a whole."""
    notices: dict[NodeName, Millis] = field(default_factory=dict)
    """The moment in the last notice by which a provider took the node back. A node that is resumed is not reclaimed
    again for it, also by a later engine."""
    failed_tasks: dict[JobId, JobId] = field(default_factory=dict)
    """For each array with a task in `jobs`: a task that did not succeed. That task may have been archived already."""
