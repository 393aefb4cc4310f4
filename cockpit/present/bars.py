"""Bars: a filled part in the role of what it measures, the rest as a quiet track that is seen without colours too."""

from __future__ import annotations

from cockpit.present import units
from cockpit.present.spans import Line, Span

TRACK = "·"
TRACK_ROLE = "free"


def bar(part: float, columns: int, role: str) -> Line:
    """So many columns for a part between 0 and 1. Only nothing is empty, and only the whole is full."""
    least = 1 / (2 * columns)
    shown = min(max(part, least), 1 - least) if 0 < part < 1 else part
    filled = units.bar(shown, columns).rstrip()
    return Span(filled, role), Span(TRACK * (columns - len(filled)), TRACK_ROLE)
