"""The columns of `cockpit doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from cockpit.present.columns import Column, TableView, ValueKind
from cockpit.present.safe import safe
from cockpit.present.width import pad

FINDINGS: Final = TableView(
    name="doctor",
    help="What this machine has and lacks",
    empty="Nothing was checked.",
    columns=(
        Column(
            "level",
            "LEVEL",
            ValueKind.TEXT,
            "ok, note or missing",
            field="level",
            schema={"enum": ["ok", "note", "missing"]},
        ),
        Column("subject", "SUBJECT", ValueKind.TEXT, "What was looked at", field="subject"),
        Column("found", "FOUND", ValueKind.TEXT, "What is there", field="found"),
        Column("advice", "ADVICE", ValueKind.TEXT, "What to do; empty: nothing", field="advice"),
    ),
)


MARKS: Final = {"ok": "✓", "note": "·", "missing": "✗"}


class Finding(Protocol):
    """Result of one check: its level, subject, finding and advice."""

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
        return [lead + text]
    from textwrap import wrap

    first, *more = wrap(text, max(room - len(lead), 20), break_on_hyphens=False) or [""]
    return [lead + first, *(" " * len(lead) + line for line in more)]
