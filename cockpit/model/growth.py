"""Why an elastic job that runs takes no further worker just now."""

from __future__ import annotations

from enum import StrEnum


class NoGrowth(StrEnum):
    """The first thing that keeps it from growing."""

    MOST = "most"
    """The job has its largest number of workers."""
    FIXED = "fixed"
    """The job was submitted not to grow."""
    NOT_WHOLE = "not_whole"
    """Not all of its workers run: some start or have ended, or the job is suspended."""
    GIVES_WAY = "gives_way"
    """Some of its workers, or it, are on their way out for another's sake."""
    NO_ROOM = "no_room"
    """No node has enough free resources for another worker."""
    KEPT = "kept"
    """The free resources are reserved for queued jobs."""
    RULES = "rules"
    """A limit or a quota leaves it no more."""
