"""The refusal of a request, as a value instead of an exception."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from cockpit.model.reasons import Reason


class RefusalKind(StrEnum):
    """The kind of a refusal, from which the command line's exit code follows."""

    INVALID = "invalid"
    """The request itself is wrong (a field, an option)."""
    NOT_FOUND = "not_found"
    """The job, node or other thing does not exist, or the user may not see it."""
    DENIED = "denied"
    """The user does not have the right."""
    CONFLICT = "conflict"
    """It is not possible in the present state: already ended, not held …"""
    UNAVAILABLE = "unavailable"
    """The engine cannot do it now: disk full, stopping, runtime missing."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is refused. Users see the message, and then a line for each reason (`present.refusals`)."""

    kind: RefusalKind
    message: str
    """What is wrong, why, and what to do next. It may have several lines, one for each error."""
    reasons: tuple[tuple[str, Reason], ...] = ()
    """Scheduling reasons, each behind the path of the field that it is about."""
    # Apart from the kind: it is about the engine and not about the request, and has an exit code of its own.
    store: bool = False
    """Whether the engine's journal is damaged or cannot be written, until an administrator repairs it."""
