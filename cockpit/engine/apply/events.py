"""What each event does to the plain state. No decisions, no clock: everything comes from the event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.apply import attempts, cluster, queue, workers
from cockpit.engine.apply.increments import keep_highest

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model import events

_RULES = queue.RULES | attempts.RULES | workers.RULES | cluster.RULES


def apply(state: ClusterState, record: events.EventRecord) -> None:
    """Fold one journal record into `state`. Raises `IllegalTransition` or `KeyError` where the journal is broken."""
    body = record.body
    if state.highest or state.cluster.priority.flags:
        keep_highest(state, body)
    _RULES[type(body)](body, state, record)
    state.seq, state.at = record.seq, record.at
