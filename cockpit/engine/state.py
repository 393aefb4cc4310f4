"""The cluster as the engine knows it: what the journal's events add up to. Only `engine.machine` changes it."""

from __future__ import annotations

import msgspec

from cockpit.model.accounts import Accounts, AssocKey, Usage
from cockpit.model.catalogue import AnyEntry, EntryKey
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import Job
from cockpit.model.node import Node, Placement
from cockpit.model.quota import QuotaTree

STATE_VERSION = 2
"""Snapshots of other versions are left alone and the events applied anew. It is raised when an event comes to mean more
than it did: 2, since when jobs count their age."""


class ClusterState(msgspec.Struct, kw_only=True):
    """Plain data: a snapshot is its encoding, and nothing in it is derived from something else in it."""

    version: int = STATE_VERSION
    seq: int = 0
    """Sequence number of the last event applied."""
    at: Millis = Millis(0)
    """When that was: the engine's clock never begins before it."""
    last_job_id: int = 0
    nodes: dict[NodeName, Node] = {}
    jobs: dict[JobId, Job] = {}
    """Live, held and just ended jobs, in order of submission."""
    cluster: Cluster = Cluster()
    accounts: Accounts = Accounts()
    catalogue: dict[EntryKey, AnyEntry] = {}
    """Replaced, never changed in place."""
    reservations: dict[str, Reservation] = {}
    quota: QuotaTree | None = None
    queues_since: dict[str, Millis] = {}
    """Since when each node of the quota tree is there, by path."""
    usage: dict[AssocKey, Usage] = {}
    """By association, accounts included: what is below them is in it. Replaced, never changed in place."""
    qos_usage: dict[str, Usage] = {}
    usage_at: Millis = Millis(0)
    """The last pass over usage: ages count to this moment."""
    usage_reset_at: Millis = Millis(0)
    """When usage last fell to nothing, or its first period began; 0: before the first pass."""
    highest: dict[JobId, dict[str, int]] = {}
    """Under INCREMENT_ONLY: by queued job and partition, the priority that it had. Replaced, never changed in place."""
    others: dict[str, tuple[Placement, ...]] = {}
    """On a fleet, by member: what jobs hold that it has not from here. Replaced, never changed in place."""
    freed_at: dict[str, Millis] = {}
    """On a fleet, by member: when something last came free there. Replaced, never changed in place."""
    failed_tasks: dict[JobId, JobId] = {}
    """By array, while any task of it is here: a task that did not succeed. It may have left the live state already."""
