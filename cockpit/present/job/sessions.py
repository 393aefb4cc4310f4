"""Sentences about sessions, which are jobs of the kind interactive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.model.job import JobState
from cockpit.model.spec import JobKind
from cockpit.present import units
from cockpit.present.folding import id_text
from cockpit.present.job_values import why
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.model.ids import JobId
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.spec import JobSpec
    from cockpit.present.columns import Context

SHELLS_ONLY: Final = "only the shells that are opened in it"
OF_IMAGE: Final = "the command of its image"
LASTS: Final = "idle or not; its resources stay allocated until it ends"


def command_words(command: str, kind: JobKind) -> str:
    """Return the job's command, harmless, or what it runs without one: a session only shells, others what their image
    starts."""
    if command:
        return safe(command)
    return SHELLS_ONLY if kind is JobKind.INTERACTIVE else OF_IMAGE


def lasting_words(job: JobId, spec: JobSpec) -> str:
    """Return the sentence about the longest duration of a session."""
    return f"Session {job} lasts at most {units.duration(spec.time_limit_seconds)}, {LASTS}."


def leaving_words(job: JobId, *, keeps: bool) -> str:
    """Return the sentence about what leaving the session's shell does to the session."""
    if keeps:
        return f"Leaving this shell keeps it: `cockpit shell {job}` enters it again, `cockpit cancel {job}` ends it."
    return "Leaving this shell (exit, Ctrl-D) ends it; --keep would keep it."


def waiting_words(detail: JobDetail, context: Context, key: str) -> str:
    """Return the sentence about a newly submitted session that is not opened now: its state, and how to open it
    later."""
    row = detail.row
    if row.ended_at is not None:
        return f"session {id_text(row)} has ended already: {why(row, context) or row.state}"
    if row.state is JobState.RUNNING:
        return f"session {id_text(row)} runs; its page shows its address once it has printed one"
    reason = why(row, context)
    entering = f"; {key} enters it once it runs" if key else ""
    return f"session {id_text(row)} is {row.state}{f': {reason}' if reason else ''}{entering}"


def address_words(job: JobId, address: str) -> str:
    """Return the sentence with a notebook's address; without an address, that it has not printed one yet."""
    if not address:
        return (
            f"It has printed no address yet: `cockpit job {job}` shows it once it has, `cockpit logs {job}` all else."
        )
    return f"It says that it is at {safe(address)}\n`cockpit cancel {job}` ends it."
