"""The order in which the job list opens: what needs the user first, then the user's own jobs, then those of others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import chain
from typing import Final

from cockpit.model.ids import JobId
from cockpit.model.job import ENDED, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held, never_starts


class Rank(IntEnum):
    """The groups of the list, in their order."""

    NEEDS_YOU = 0
    """The user's own jobs that go on only if the user acts: failed, held, or never to start as they are."""
    MY_QUEUED = 1
    MY_RUNNING = 2
    RUNNING = 3
    """Other users' jobs that occupy resources or are suspended."""
    QUEUED = 4
    MY_ENDED = 5
    ENDED = 6


_FAILED: Final = frozenset({JobState.ERROR, JobState.EXPIRED})
_MINE: Final[dict[JobState, Rank]] = {
    state: Rank.MY_ENDED if state in ENDED else Rank.MY_RUNNING for state in JobState
} | {JobState.QUEUED: Rank.MY_QUEUED}
_OTHERS: Final[dict[JobState, Rank]] = {state: Rank.ENDED if state in ENDED else Rank.RUNNING for state in JobState} | {
    JobState.QUEUED: Rank.QUEUED
}
_NEWEST_FIRST: Final = frozenset({Rank.NEEDS_YOU, Rank.MY_ENDED, Rank.ENDED})
"""Groups that grow for ever: the last failure is the one that the user has come for."""
_SPAN: Final = 1 << 128
"""A number above every age."""


def needs_owner(row: JobRow) -> bool:
    """Return whether the job goes on only if its owner acts: it failed, its container is held, it is held back, or it
    can never start as it is."""
    if row.held_until is not None or row.state in _FAILED:
        return True
    return row.reason is not None and (isinstance(row.reason, Held) or never_starts(row.reason))


def rank_of(row: JobRow, user: str) -> Rank:
    """Return the group in which the list shows the job to this user."""
    if row.user != user:
        return _OTHERS[row.state]
    return Rank.NEEDS_YOU if needs_owner(row) else _MINE[row.state]


def landing_order(rows: Sequence[JobRow], user: str) -> list[JobId]:
    """Return the ids of the rows, which are in order of submission, group by group."""
    groups: list[list[JobId]] = [[] for _ in Rank]
    put = [group.append for group in groups]
    # Nearly all of a hundred thousand rows are other users': no function is called for these.
    for row in rows:
        put[_OTHERS[row.state] if row.user != user else rank_of(row, user)](row.id)
    return list(
        chain.from_iterable(group[::-1] if Rank(rank) in _NEWEST_FIRST else group for rank, group in enumerate(groups))
    )


def landing_keys(rows: Iterable[JobRow], ages: Iterable[int], user: str) -> list[int]:
    """Return the sort keys of rows, whose ascending order is that of `landing_order`. `ages`: their order of
    submission."""
    # One number and no tuple: it is compared a dozen times for each row that comes.
    return [
        rank * _SPAN + (_SPAN - age if rank in _NEWEST_FIRST else age)
        for rank, age in zip((rank_of(row, user) for row in rows), ages, strict=True)
    ]
