"""Which state may follow which (JT-31). One table; an illegal step is a defect of the engine, never of a request."""

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
    # Starting again, from a checkpoint: what was interrupted has waited in between.
    _S.RESUMING: frozenset({_S.RUNNING, _S.QUEUED}) | _STOPS,
    _S.RUNNING: frozenset({_S.SUSPENDED, _S.QUEUED}) | _ENDS,
    # It may have ended just before it stood still, so any end is possible.
    _S.SUSPENDED: frozenset({_S.RUNNING, _S.QUEUED}) | _ENDS,
    # A requeue keeps the id: the only way out of an end.
    _S.SUCCEEDED: frozenset({_S.QUEUED}),
    _S.ERROR: frozenset({_S.QUEUED}),
    _S.EXPIRED: frozenset({_S.QUEUED}),
    _S.STOPPED: frozenset({_S.QUEUED}),
}


class IllegalTransition(AssertionError):
    """An event asks for a step that the table does not have: the journal or the engine is broken."""
