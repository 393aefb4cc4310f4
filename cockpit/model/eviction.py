"""The modes and rules by which a running job is evicted for another one."""

from __future__ import annotations

from enum import StrEnum


class EvictionMode(StrEnum):
    """What happens to an evicted job: Slurm's PreemptMode, and `SHRINK`."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    SUSPEND = "suspend"
    SHRINK = "shrink"
    """The job continues with fewer workers. Slurm has no such mode. Elastic jobs are shrunk before any job is evicted.
    """


class Grounds(StrEnum):
    """The rule by which a job is evicted."""

    QOS = "qos"
    """The waiting job's QOS may preempt the evicted job's (preempt/qos)."""
    PARTITION = "partition"
    """The waiting job's partition has a higher tier (preempt/partition_prio)."""
    QUOTA = "quota"
    """The waiting job's queue has less than its guarantee, and the evicted job's queue has borrowed."""
    RECLAIM = "reclaim"
    """The node's provider takes the node back; no job waits for it."""
    PRESSURE = "pressure"
    """The node runs short of memory, and best-effort jobs are evicted first; no job waits for it."""
