"""What is wrong with the engine just now, in sentences for `engine status` and for whoever is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.units import spoken

if TYPE_CHECKING:
    from cockpit.errors import StoreError

CLOCK_JUMP_MS = 10_000
"""A machine's clock this far from the engine's is worth telling."""


def unavailable(error: StoreError) -> Refusal:
    """The refusal that a request meets while the journal cannot be written."""
    return Refusal(RefusalKind.UNAVAILABLE, str(error), store=not error.passing)


def given_up(error: Exception) -> Refusal:
    """What every act is told after the engine's promises have been broken."""
    return Refusal(
        RefusalKind.UNAVAILABLE,
        f"The engine found its own records contradictory ({error}) and decides nothing more, so that nothing gets "
        "worse. What runs goes on. `cockpit engine restart` reads the journal anew; please report this with the "
        "engine's log.",
    )


def clock_trouble(offset_ms: int) -> str:
    """What a person should know when the machine's clock is so far ahead of the engine's; empty: nothing."""
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
