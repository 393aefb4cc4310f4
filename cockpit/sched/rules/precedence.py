"""Reads the preemption configuration: which jobs a job may preempt, and what happens to a preempted job."""

from __future__ import annotations

from cockpit.model.accounts import Accounts, Qos
from cockpit.model.cluster import Cluster, Partition, PreemptType
from cockpit.model.eviction import EvictionMode
from cockpit.model.job import Job

WITHIN = "WITHIN"
"""The PreemptMode word by which jobs of one QOS preempt each other, in the order of their priorities."""
GANG = "GANG"
NO_PARTITION = Partition(name="")
NO_QOS = Qos(name="")
_MODES = {mode.value.upper(): mode for mode in (EvictionMode.CANCEL, EvictionMode.REQUEUE, EvictionMode.SUSPEND)}


def preemption_key(cluster: Cluster, accounts: Accounts, job: Job, partition: str) -> str:
    """Return a key of what decides which jobs it may preempt, beside its partition; empty: none."""
    match cluster.preemption.kind:
        case PreemptType.QOS:
            own = accounts.qos.get(job.qos, NO_QOS)
            return own.name if own.preempt or WITHIN in cluster.preemption.mode else ""
        case PreemptType.PARTITION:
            least = min((each.priority_tier for each in cluster.partitions), default=1)
            tier = (cluster.partition(partition) or NO_PARTITION).priority_tier
            return f"tier {tier}" if tier > least else ""
    return ""


def mode_of(cluster: Cluster, accounts: Accounts, job: Job) -> EvictionMode | None:
    """Return what happens to the running job when it is preempted; None: it cannot be.

    A partition's own mode counts with preempt/partition_prio, a QOS's with preempt/qos, where OFF is the same as no
    mode. A job that resumes from checkpoints, or is suspended below its minimum, is not cancelled but requeued.
    """
    mode = _configured_mode(cluster, accounts, job)
    waits = job.spec.resume is not None or job.spec.suspends
    return EvictionMode.REQUEUE if mode is EvictionMode.CANCEL and waits else mode


def _configured_mode(cluster: Cluster, accounts: Accounts, job: Job) -> EvictionMode | None:
    preemption = cluster.preemption
    usual = next((_MODES[word] for word in preemption.mode if word in _MODES), None)
    if preemption.kind == PreemptType.QOS:
        return _MODES.get(accounts.qos.get(job.qos, NO_QOS).preempt_mode, usual)
    own = partition_of(cluster, job).preempt_mode
    return _MODES.get(own) if own not in ("", GANG) else usual


def partition_of(cluster: Cluster, job: Job) -> Partition:
    """Return the partition in which the job runs."""
    name = job.attempt.partition if job.attempt is not None else ""
    return cluster.partition(name) or NO_PARTITION
