"""The sentences about the engine's current problems, for `engine status` and for refused requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.units import spoken

if TYPE_CHECKING:
    from cockpit.errors import StoreError

CLOCK_JUMP_MS = 10_000
"""Difference between the machine's clock and the engine's from which on it is reported."""


def unavailable(error: StoreError) -> Refusal:
    """Return the refusal of a request while the journal cannot be written."""
    return Refusal(RefusalKind.UNAVAILABLE, str(error), store=not error.passing)


def given_up(error: Exception) -> Refusal:
    """Return the refusal of every change after an invariant of the engine was violated."""
    return Refusal(
        RefusalKind.UNAVAILABLE,
        f"The engine found its own records contradictory ({error}) and decides nothing more, so that nothing gets "
        "worse. What runs goes on. `cockpit engine restart` reads the journal anew; please report this with the "
        "engine's log.",
    )


def clock_trouble(offset_ms: int) -> str:
    """Return the warning about a machine's clock that is ahead of the engine's by this time; empty if it is close."""
    if abs(offset_ms) < CLOCK_JUMP_MS:
        return ""
    apart = spoken(abs(offset_ms) // 1000)
    if offset_ms > 0:
        return (
            f"This machine's clock has been set {apart} ahead of the engine's, which does not follow such jumps. "
            "If the machine is right, `cockpit engine restart` takes its time over."
        )
    return (
        f"This machine's clock has been set back to {apart} behind the engine's, which never goes back: "
        "times shown here are that much too late until the two meet."
    )
