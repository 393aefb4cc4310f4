"""The columns of `cockpit engine status` and of `cockpit doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from cockpit.present.columns import NOTHING, Column, Context, TableView, ValueKind
from cockpit.present.safe import safe
from cockpit.present.width import pad

ENGINE: Final = TableView(
    name="engine",
    identity=("pid",),
    help="The embedded engine",
    empty="",
    columns=(
        Column(
            "status",
            "STATUS",
            "running or stopped",
            derive=lambda row, _: "running" if row.running else "stopped",
            values=("running", "stopped"),
        ),
        Column("pid", "PID", "Its process", ValueKind.INTEGER, nullable=True),
        Column(
            "scope",
            "SCOPE",
            "Whom it serves",
            derive=lambda row, _: "machine" if row.system else "user",
            values=("machine", "user"),
        ),
        Column("socket", "SOCKET", "Where it listens"),
        Column("state_folder", "STATE FOLDER", "Where its journal is"),
        Column("version", "VERSION", "Of cockpit"),
        Column("protocol", "PROTOCOL", "Of its socket, major.minor"),
        Column("started_at", "STARTED", "When it started", ValueKind.MOMENT, nullable=True),
        Column("jobs", "JOBS", "Jobs it knows", ValueKind.INTEGER),
        Column("containers", "CONTAINERS", "How containers are made"),
        Column("trouble", "TROUBLE", "What is wrong just now", ValueKind.WORDS),
    ),
)


def record_lines(columns: Sequence[Column], row: object, context: Context) -> list[str]:
    """Return `label  text` for each column whose text is not empty."""
    room = max(len(column.title) for column in columns) + 2
    # The same columns as in JSON, one below the other: a single row is no table for people.
    texts = [(column.title.lower(), column.texts((row,), context)[0]) for column in columns]
    return [f"{pad(label, room)}{text}" for label, text in texts if text not in {"", NOTHING}]


FINDINGS: Final = TableView(
    name="doctor",
    help="What this machine has and lacks",
    empty="Nothing was checked.",
    columns=(
        Column("level", "LEVEL", "ok, note or missing", values=("ok", "note", "missing")),
        Column("subject", "SUBJECT", "What was looked at"),
        Column("found", "FOUND", "What is there"),
        Column("advice", "ADVICE", "What to do; empty: nothing"),
    ),
)


MARKS: Final = {"ok": "✓", "note": "·", "missing": "✗"}


class Finding(Protocol):
    """Result of one check: its level (`ok`, `note` or `missing`), subject, finding, and advice (empty: none)."""

    @property
    def level(self) -> str: ...

    @property
    def subject(self) -> str: ...

    @property
    def found(self) -> str: ...

    @property
    def advice(self) -> str: ...


def findings_lines(findings: Sequence[Finding], room: int | None) -> list[str]:
    """Return the findings as harmless lines, wrapped at `room` columns; None: not wrapped."""
    label = max((len(finding.subject) for finding in findings), default=0) + 2
    lines: list[str] = []
    for finding in findings:
        lead = f"{MARKS.get(finding.level, '?')} {pad(safe(finding.subject), label)}"
        lines += _hanging(lead, safe(finding.found), room)
        if finding.advice:
            lines += _hanging(" " * (label + 2) + "→ ", safe(finding.advice), room)
    return lines


def _hanging(lead: str, text: str, room: int | None) -> Iterable[str]:
    """Return the text after its lead, with further lines indented below the first."""
    if room is None:
        # Into a pipe: other programs take a finding as one line.
        return [lead + text]
    from textwrap import wrap

    first, *more = wrap(text, max(room - len(lead), 20), break_on_hyphens=False) or [""]
    return [lead + first, *(" " * len(lead) + line for line in more)]
