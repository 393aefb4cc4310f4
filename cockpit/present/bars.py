"""Bars: a filled part in the role of what it measures, the rest as a quiet track that is seen without colours too."""

from __future__ import annotations

from cockpit.present import units
from cockpit.present.spans import Line, Span

TRACK = "·"
TRACK_ROLE = "free"


def bar(part: float, columns: int, role: str) -> Line:
    """So many columns for a part between 0 and 1. What is above nothing shows at least a sliver."""
    least = 1 / (8 * columns) if part > 0 else 0.0
    filled = units.bar(max(part, least), columns).rstrip()
    return Span(filled, role), Span(TRACK * (columns - len(filled)), TRACK_ROLE)
