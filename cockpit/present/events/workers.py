"""Sentences for the workers of elastic jobs: they come, are recalled, and leave."""

from __future__ import annotations

from datetime import tzinfo
from typing import assert_never

from cockpit.model import events
from cockpit.model.ids import Millis
from cockpit.present import units
from cockpit.present.events.evictions import gives_way
from cockpit.present.moments import clock
from cockpit.present.phrases import listed
from cockpit.present.safe import safe

WorkersEvent = events.WorkersAdded | events.WorkersRecalled | events.WorkersLeft | events.WorkerReplaced


def workers_sentence(body: WorkersEvent, at: Millis, zone: tzinfo | None) -> str:
    """What became of some of a running job's workers."""
    match body:
        case events.WorkersAdded():
            nodes = listed(part.node for part in body.placement)
            return f"grows by {units.counted(len(body.placement), 'worker')}: {nodes}"
        case events.WorkersRecalled():
            patience = " at once" if body.kill_at <= at else f", and killed at {clock(body.kill_at, at, zone)}"
            asked = "is" if len(body.ranks) == 1 else "are"
            return f"{gives_way(body.for_job, body.grounds)}: {_named(body.ranks)} {asked} recalled{patience}"
        case events.WorkersLeft():
            return f"goes on without {_named(body.ranks)}" + (_off(body) if body.because else "")
        case events.WorkerReplaced():
            return f"replica {body.rank} ended, and replica {body.by} takes its place, retry {body.retry}"
        case _:
            assert_never(body)


def _off(body: events.WorkersLeft) -> str:
    each = "its node is" if len(body.ranks) == 1 else "their nodes are"
    return f": {safe(body.because)}; {each} on its block list"


def _named(ranks: tuple[int, ...]) -> str:
    return f"{'replica' if len(ranks) == 1 else 'replicas'} {listed(map(str, ranks))}"
