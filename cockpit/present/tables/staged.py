"""The columns of the list of staged copies."""

from __future__ import annotations

from typing import Final

from cockpit.model.staging import StagedCopy
from cockpit.present import units
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.moments import brief_clock
from cockpit.present.safe import safe
from cockpit.present.states import copied_percent

KEY_LETTERS: Final = 12
"""Number of letters of a key that are shown, enough to identify the copy."""
_MIB: Final = 1 << 20


def state(row: StagedCopy, _: Context) -> str:
    if row.progress is not None:
        return "copying"
    return "used" if row.jobs else "kept"


def copy_line(row: StagedCopy, context: Context) -> str:
    """Return one copy in a few harmless words, for a list to choose from."""
    # While it is copied, how far it is matters more than who uses it.
    size = units.memory(row.size // _MIB)
    if row.progress is not None:
        return f"{row.what} · {copied_percent(row.progress)} of {size}"
    jobs = f"used by {', '.join(map(str, row.jobs))}" if row.jobs else f"last used {_last(row, context)}"
    users = f" · {', '.join(map(safe, row.users))}" if row.users else ""
    return f"{row.what} · {size} · {jobs}{users}"


def removal_question(row: StagedCopy) -> tuple[str, str]:
    """Return the question to confirm before the copy is removed, and the consequences."""
    size = units.memory(row.size // _MIB)
    return f"Remove the copy of {safe(row.source)}?", f"{size} come free; the next job that wants it copies it again."


def _last(row: StagedCopy, context: Context) -> str:
    return brief_clock(row.used_at, context.now, context.zone)


STAGED: Final = TableView(
    name="staged",
    identity=("key",),
    help="Copies of datasets and images on this machine",
    empty="Nothing is staged.",
    columns=(
        Column("key", "KEY", "Names it", derive=lambda row, _: row.key[:KEY_LETTERS]),
        Column("what", "WHAT", "A dataset, or an image that was unpacked"),
        Column(
            "state",
            "STATE",
            "Being made, used by jobs, or kept after its last use",
            derive=state,
            values=("copying", "used", "kept"),
        ),
        Column("size_mib", "SIZE", "What it takes, in MiB", ValueKind.MIB, derive=lambda row, _: row.size // _MIB),
        Column(
            "done",
            "DONE",
            "While it is being made, how much of it there is",
            derive=lambda row, _: copied_percent(row.progress) if row.progress is not None else None,
            nullable=True,
            wide=True,
        ),
        Column("used_at", "LAST USED", "When it was last used; now, while it is", ValueKind.MOMENT),
        Column("made_at", "MADE", "When it was made", ValueKind.MOMENT, wide=True),
        Column("jobs", "JOBS", "Jobs that use it", ValueKind.WORDS, derive=lambda row, _: tuple(map(str, row.jobs))),
        Column("users", "USERS", "Whose jobs have used it", ValueKind.WORDS, aliases=("user",)),
        Column("source", "OF", "What it is a copy of"),
    ),
)
