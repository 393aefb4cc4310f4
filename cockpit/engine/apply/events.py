"""What each event does to the plain state. No decisions, no clock: everything comes from the event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.apply import attempts, cluster, queue, workers
from cockpit.engine.apply.increments import PRIORITIES_MOVE, keeping_highest

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model import events

_PLAIN = queue.RULES | attempts.RULES | workers.RULES | cluster.RULES
RULES = _PLAIN | {kind: keeping_highest(_PLAIN[kind]) for kind in PRIORITIES_MOVE}
"""By type of event. Each raises `IllegalTransition` or `KeyError` where the journal is broken."""


def apply(state: ClusterState, record: events.EventRecord) -> None:
    """Fold one journal record into `state`. Raises as its rule does."""
    RULES[type(record.body)](record.body, state, record)
    state.seq, state.at = record.seq, record.at
