"""Converts the longest permitted wait of a job into its deadline, which includes its whole time limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.spec import DAY_SECONDS

if TYPE_CHECKING:
    from cockpit.formats.foreign.draft import Draft


def take_longest_wait(seconds: int, at: str, draft: Draft, limit_seconds: int | None = None) -> None:
    """`limit_seconds`: the time limit; None: nothing gives one, and the usual one is written down."""
    if not seconds:
        return
    if limit_seconds is None:
        limit_seconds = DAY_SECONDS
        draft.values.setdefault("time_limit", limit_seconds)
    draft.values["deadline"] = f"now+{seconds + limit_seconds}"
    draft.lacks(at, f"is the deadline, with the time limit of {limit_seconds} s behind it, counted from now")
