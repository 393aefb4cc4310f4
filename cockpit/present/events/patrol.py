"""Sentences for the problems that are detected in a running job with checkpoints: node faults and slow iterations."""

from __future__ import annotations

from cockpit.model import events
from cockpit.present.phrases import listed
from cockpit.present.safe import safe

PatrolEvent = events.FaultFound | events.PerformanceFell


def patrol_sentence(body: PatrolEvent) -> str:
    """Return the sentence of an event about a node fault or slow iterations."""
    if isinstance(body, events.FaultFound):
        return f"a fault was found on {safe(body.node)}: {safe(body.because)}"
    sentence = slow_sentence(body.slow.part, body.threshold)
    notice = f"; {safe(body.address)} is written to" if body.address else ""
    move = f"; it continues on {listed(map(safe, body.elsewhere))}" if body.elsewhere else ""
    figures = f" ({body.slow.hardware_ms:g} of {body.slow.e2e_ms:g} ms in replica {body.slow.rank})"
    return f"{sentence}{figures}{notice}{move}"


def slow_sentence(part: float, threshold: float) -> str:
    """Return the sentence about slow iterations: `its iterations are slow: their hardware took 0.95 of the whole time,
    above 0.9`."""
    return f"its iterations are slow: their hardware took {part:.3g} of the whole time, above {threshold:g}"
