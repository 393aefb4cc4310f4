"""Sentences of alerts, for the event list, the cockpit's notices, and the receivers that are set up."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Final, assert_never

from cockpit.model.alerts import Alert, AlertKind
from cockpit.model.ids import Millis
from cockpit.present import units
from cockpit.present.moments import clock
from cockpit.present.phrases import listed
from cockpit.present.safe import safe
from cockpit.present.states import exit_sentence

HEADLINES: Final[Mapping[AlertKind, str]] = {
    AlertKind.PERFORMANCE: "is slow",
    AlertKind.FAULT: "has a fault on a node",
    AlertKind.RECLAIM: "loses nodes",
    AlertKind.SUSPENDED: "is suspended",
    AlertKind.WAITING: "waits for too long",
    AlertKind.BLOCKED: "does without a worker",
    AlertKind.EXHAUSTED: "failed for good",
}
"""What has happened to the job, for the subject of a mail."""


def alert_sentence(alert: Alert, at: Millis, zone: tzinfo | None) -> str:
    """Return the sentence about the job, without the job itself. Times are relative to `at`."""
    match alert.kind:
        case AlertKind.PERFORMANCE:
            return _of_slow(alert)
        case AlertKind.FAULT:
            return f"a fault was found on {listed(alert.nodes)}: {safe(alert.because)}"
        case AlertKind.RECLAIM:
            return _of_reclaim(alert, at, zone)
        case AlertKind.SUSPENDED | AlertKind.WAITING:
            return _of_too_few(alert)
        case AlertKind.BLOCKED:
            verb = "is" if len(alert.nodes) == 1 else "are"
            return f"{listed(alert.nodes)} {verb} on its block list: {safe(alert.because)}"
        case AlertKind.EXHAUSTED:
            how = f" ({exit_sentence(alert.exit)})" if alert.exit is not None else ""
            used = units.counted(alert.retries, "retry", "retries")
            return f"it failed{how}, and has no retry left after {used}"
        case _:
            assert_never(alert.kind)


def _of_too_few(alert: Alert) -> str:
    if alert.kind is AlertKind.SUSPENDED:
        return "it has fewer workers than it needs: it is suspended, and resumes by itself when there is space"
    then = "waits as other jobs do" if alert.continues else "has ended"
    return f"it was suspended for as long as it waits for its workers, and {then}"


def slow_sentence(part: float, threshold: float) -> str:
    """Return the sentence about slow iterations: `its iterations are slow: their hardware took 0.95 of the whole time,
    above 0.9`."""
    return f"its iterations are slow: their hardware took {part:.3g} of the whole time, above {threshold:g}"


def _of_slow(alert: Alert) -> str:
    if (slow := alert.slow) is None:
        return "its iterations are slow"
    figures = f" ({slow.hardware_ms:g} of {slow.e2e_ms:g} ms in replica {slow.rank})"
    move = f"; it continues on {listed(alert.nodes)}" if alert.nodes else ""
    return f"{slow_sentence(slow.part, alert.threshold)}{figures}{move}"


def _of_reclaim(alert: Alert, at: Millis, zone: tzinfo | None) -> str:
    # By the alert's own time: later, too, the sentence says how long they had.
    kill_at = alert.kill_at or alert.at
    until = f"until {clock(kill_at, at, zone)}" if kill_at > alert.at else "no time"
    if not alert.continues:
        return f"its nodes are taken back: it has {until} to save its state, and waits again"
    workers = units.counted(len(alert.ranks), "worker")
    has = "has" if len(alert.ranks) == 1 else "have"
    verb = "is" if len(alert.nodes) == 1 else "are"
    return f"{listed(alert.nodes)} {verb} taken back: {workers} {has} {until} to end; it continues without"
