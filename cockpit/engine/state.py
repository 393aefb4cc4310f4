"""The cluster as the engine knows it: what the journal's events add up to. Only `engine.machine` changes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from cockpit.model.accounts import Accounts, AssocKey, Usage
from cockpit.model.catalogue import AnyEntry, EntryKey
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import Node, Placement
from cockpit.model.quota import QuotaTree

STATE_VERSION = 3
"""Snapshots of other versions are left alone and the events applied anew. It is raised when an event comes to mean more
than it did: 2, since when jobs count their age."""


_BEFORE_ALL = Millis(0)


@dataclass(slots=True, kw_only=True)  # every event writes to it, which takes a Struct five times as long
class ClusterState:
    """Plain data: a snapshot is its encoding, and nothing in it is derived from something else in it."""

    version: int = STATE_VERSION
    seq: int = 0
    """Sequence number of the last event applied."""
    at: Millis = _BEFORE_ALL
    """When that was: the engine's clock never begins before it."""
    last_job_id: int = 0
    nodes: dict[NodeName, Node] = field(default_factory=dict)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    """Live, held and just ended jobs, in order of submission."""
    cluster: Cluster = field(default_factory=Cluster)
    accounts: Accounts = field(default_factory=Accounts)
    catalogue: dict[EntryKey, AnyEntry] = field(default_factory=dict)
    """Replaced, never changed in place."""
    reservations: dict[str, Reservation] = field(default_factory=dict)
    quota: QuotaTree | None = None
    queues_since: dict[str, Millis] = field(default_factory=dict)
    """Since when each node of the quota tree is there, by path."""
    usage: dict[AssocKey, Usage] = field(default_factory=dict)
    """By association, accounts included: what is below them is in it. Replaced, never changed in place."""
    qos_usage: dict[str, Usage] = field(default_factory=dict)
    usage_at: Millis = _BEFORE_ALL
    """The last pass over usage: ages count to this moment."""
    usage_reset_at: Millis = _BEFORE_ALL
    """When usage last fell to nothing, or its first period began; 0: before the first pass."""
    highest: dict[JobId, dict[str, int]] = field(default_factory=dict)
    """Under INCREMENT_ONLY: by queued job and partition, the priority that it had. Replaced, never changed in place."""
    others: dict[str, tuple[Placement, ...]] = field(default_factory=dict)
    """On a fleet, by member: what jobs hold that it has not from here. Replaced, never changed in place."""
    freed_at: dict[str, Millis] = field(default_factory=dict)
    """On a fleet, by member: when something last came free there. Replaced, never changed in place."""
    failed_tasks: dict[JobId, JobId] = field(default_factory=dict)
    """By array, while any task of it is here: a task that did not succeed. It may have left the live state already."""
