"""Defects that come up while one job is judged. Each affects that job alone, so that all other jobs get their
answers."""

from __future__ import annotations

from cockpit.model.ids import JobId

Faults = dict[JobId, Exception]
"""The first exception that was raised while a job was judged, by job."""

_LONGEST = 200


def described(error: Exception) -> str:
    """Return the exception's type and text in one short line: `IndexError: tuple index out of range`."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:_LONGEST] if text else type(error).__name__
