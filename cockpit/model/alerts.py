"""Alerts: events of a job that its owner and the administrators learn of without looking."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.attempt import ExitStatus, Slow
from cockpit.model.ids import Millis, NodeName


class AlertKind(StrEnum):
    """What an alert is about."""

    PERFORMANCE = "performance"
    """The job's iterations are slow."""
    FAULT = "fault"
    """A component of a node under the job failed."""
    RECLAIM = "reclaim"
    """A node under the job is taken back: by its provider, or for memory that best-effort jobs use."""
    SUSPENDED = "suspended"
    """The elastic job is suspended: it has fewer workers than its least number."""
    WAITING = "waiting"
    """The elastic job was suspended for longer than its `max_wait_time`."""
    BLOCKED = "blocked"
    """Nodes were put on the elastic job's block list, with the workers there."""
    EXHAUSTED = "exhausted"
    """The job failed, and has no restart or resume left."""


class Alert(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One alert about a job, with what its sentence needs."""

    kind: AlertKind
    at: Millis
    nodes: tuple[NodeName, ...] = ()
    """The nodes concerned; of slow iterations those to which the job is moved."""
    because: str = ""
    """What is wrong with them, as text; empty: the kind says it."""
    ranks: tuple[int, ...] = ()
    """The workers that leave or have left the job."""
    kill_at: Millis | None = None
    """When what still runs on a reclaimed node is killed."""
    continues: bool = True
    """Whether the job goes on: with its other workers, or waiting in its queue."""
    retries: int = 0
    """How often it was retried, of a job that has no retry left."""
    exit: ExitStatus | None = None
    slow: Slow | None = None
    threshold: float = 0
