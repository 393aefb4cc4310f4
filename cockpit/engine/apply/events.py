"""Applies events to the plain state. No rule decides anything or reads a clock: all data comes from the event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.apply import attempts, cluster, queue, workers
from cockpit.engine.apply.increments import PRIORITIES_MOVE, keeping_highest

if TYPE_CHECKING:
    from cockpit.engine.state import ClusterState
    from cockpit.model import events

_PLAIN = queue.RULES | attempts.RULES | workers.RULES | cluster.RULES
RULES = _PLAIN | {kind: keeping_highest(_PLAIN[kind]) for kind in PRIORITIES_MOVE}
"""The rule for each type of event. A rule raises `IllegalTransition` or `KeyError` if the event does not fit the state,
which only a damaged journal or a defect of the engine can cause."""


def apply(state: ClusterState, record: events.EventRecord) -> None:
    """Apply one journal record to `state`. Raises `IllegalTransition` or `KeyError` if it does not fit."""
    RULES[type(record.body)](record.body, state, record)
    state.seq, state.at = record.seq, record.at
