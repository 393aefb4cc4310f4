"""Why an elastic job that runs takes no further worker just now."""

from __future__ import annotations

from enum import StrEnum


class NoGrowth(StrEnum):
    """The first thing that keeps it from growing."""

    MOST = "most"
    """It has as many as it may have."""
    FIXED = "fixed"
    """It was submitted not to grow."""
    NOT_WHOLE = "not_whole"
    """Not all of its workers run: some start, have come to their end, or it stands still."""
    GIVES_WAY = "gives_way"
    """Some of its workers, or it, are on their way out for another's sake."""
    NO_ROOM = "no_room"
    """No node has room for one more."""
    KEPT = "kept"
    """What is free is kept for jobs that wait."""
    RULES = "rules"
    """A limit or a quota leaves it no more."""
