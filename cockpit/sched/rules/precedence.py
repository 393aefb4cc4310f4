"""Who stands above whom by the rules alone, and how a job gives way: what preemption reads of cluster and accounts."""

from __future__ import annotations

from cockpit.model.accounts import Accounts, Qos
from cockpit.model.cluster import Cluster, Partition, PreemptType
from cockpit.model.eviction import EvictionMode
from cockpit.model.job import Job

WITHIN = "WITHIN"
"""The PreemptMode by which jobs of one QOS preempt each other, in the order of their priorities."""
GANG = "GANG"
NO_PARTITION = Partition(name="")
NO_QOS = Qos(name="")
_MODES = {mode.value.upper(): mode for mode in (EvictionMode.CANCEL, EvictionMode.REQUEUE, EvictionMode.SUSPEND)}


def preemption_key(cluster: Cluster, accounts: Accounts, job: Job, partition: str) -> str:
    """What of the job decides whom it may preempt, beside its partition; empty: it may preempt nobody."""
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
    """How the running job gives way when it is preempted; None: it is not.

    A partition's own mode counts with preempt/partition_prio, a QOS's with preempt/qos, where OFF is as good as none.
    One that goes on from its checkpoints, or is suspended below its min, is not cancelled: it waits again.
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
    """Where it runs."""
    name = job.attempt.partition if job.attempt is not None else ""
    return cluster.partition(name) or NO_PARTITION
