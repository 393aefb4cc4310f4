"""How a running job gives way to another, and by what right."""

from __future__ import annotations

from enum import StrEnum


class EvictionMode(StrEnum):
    """What becomes of the one that gives way: Slurm's PreemptMode."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    SUSPEND = "suspend"
    SHRINK = "shrink"
    """It goes on with fewer workers. No mode of Slurm's: an elastic job does so before anybody is evicted."""


class Grounds(StrEnum):
    """The rule by which one job takes another's room."""

    QOS = "qos"
    """Its QOS may preempt the other's (preempt/qos)."""
    PARTITION = "partition"
    """Its partition is of a higher tier (preempt/partition_prio)."""
    QUOTA = "quota"
    """Its queue is below what it is guaranteed, and the other's has borrowed."""
    RECLAIM = "reclaim"
    """No job's: the node is taken back."""
    PRESSURE = "pressure"
    """No job's: the node runs short of memory, and best effort goes first."""
