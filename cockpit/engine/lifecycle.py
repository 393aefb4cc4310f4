"""The table of legal changes of a job's state (JT-31). An illegal one is a defect of the engine, never of a request."""

from __future__ import annotations

from cockpit.model.job import ENDED, JobState

_S = JobState

_STOPS = frozenset({_S.STOPPED, _S.ERROR})
_ENDS = ENDED

LEGAL: dict[JobState, frozenset[JobState]] = {
    _S.QUEUED: frozenset({_S.PRECHECKING, _S.STAGING, _S.STARTING, _S.RESUMING}) | _STOPS,
    _S.PRECHECKING: frozenset({_S.QUEUED, _S.STAGING, _S.STARTING, _S.RESUMING}) | _STOPS,
    _S.STAGING: frozenset({_S.QUEUED, _S.STARTING, _S.RESUMING}) | _STOPS,
    _S.STARTING: frozenset({_S.RUNNING, _S.QUEUED}) | _STOPS,
    # Resuming is the start of a later attempt, from a checkpoint; the job was queued in between.
    _S.RESUMING: frozenset({_S.RUNNING, _S.QUEUED}) | _STOPS,
    _S.RUNNING: frozenset({_S.SUSPENDED, _S.QUEUED}) | _ENDS,
    # Its command may have ended just before it was suspended, so any end is possible.
    _S.SUSPENDED: frozenset({_S.RUNNING, _S.QUEUED}) | _ENDS,
    # A requeue keeps the id: the only way out of an end.
    _S.SUCCEEDED: frozenset({_S.QUEUED}),
    _S.ERROR: frozenset({_S.QUEUED}),
    _S.EXPIRED: frozenset({_S.QUEUED}),
    _S.STOPPED: frozenset({_S.QUEUED}),
}


class IllegalTransition(AssertionError):
    """An event would change a job's state in an illegal way: the journal is damaged, or the engine has a defect."""
