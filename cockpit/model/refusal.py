"""An expected "no" to a request, as a value."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.reasons import Reason


class RefusalKind(StrEnum):
    """What sort of no it is; headless turns it into an exit code."""

    INVALID = "invalid"
    """The request itself is wrong (a field, an option)."""
    NOT_FOUND = "not_found"
    DENIED = "denied"
    """The asker may not."""
    CONFLICT = "conflict"
    """Not in this state: already ended, not held …"""
    UNAVAILABLE = "unavailable"
    """The engine cannot just now: disk full, stopping, runtime missing."""


class Refusal(msgspec.Struct, frozen=True):
    """Said to a person as its message, then one line per reason (`present.refusals`)."""

    kind: RefusalKind
    message: str
    """What, why, and what to do next. May have several lines: one error each."""
    reasons: tuple[tuple[str, Reason], ...] = ()
    """Scheduling reasons, each behind the path of the field it is about."""
    store: bool = False
    """The engine's journal is damaged or cannot be written, until a person mends it."""
