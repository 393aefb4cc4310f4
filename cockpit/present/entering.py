"""The lines that a user sees on entering a container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.present.folding import id_text
from cockpit.present.log_lines import log_lines
from cockpit.present.moments import clock
from cockpit.present.safe import safe
from cockpit.present.states import exit_sentence

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail
    from cockpit.present.columns import Context

KILLED: Final = 128 + 9
"""Exit code of a shell that was killed."""
WAS_KILLED: Final = "The shell was killed: its job or its hold has ended, or its memory ran out."
LAST_LINES = 3
LABEL = "Last lines:  "


def entry_lines(detail: JobDetail, rank: int, notice: str, context: Context) -> Iterator[str]:
    """Yield harmless lines for above the first prompt: the container and its state, the notice, and the last lines of
    an ended job."""
    yield " · ".join(container_words(detail, rank, context))
    if notice:
        yield notice
    if detail.log_tail.strip() and detail.row.ended_at is not None:
        # Only of an ended job: they say why it failed. Those of a running job are old as soon as they are read.
        for number, text in enumerate(log_lines(detail.log_tail.strip("\n"))[-LAST_LINES:]):
            yield f"{LABEL if number == 0 else ' ' * len(LABEL)}{text}"


def container_words(detail: JobDetail, rank: int, context: Context) -> Iterator[str]:
    """Yield the words for a container: `4715 bert-eval`, `replica 0 on n03`, `ended 11:02 with exit 3`, `held until
    15:02`."""
    row, attempt = detail.row, detail.job.attempt
    yield f"{id_text(row)} {safe(row.name)}"
    places = {each.rank: each.node for each in attempt.placement} if attempt is not None else {}
    yield f"replica {rank}" + (f" on {safe(places[rank])}" if rank in places else "")
    replica = next((each for each in attempt.replicas if each.rank == rank), None) if attempt is not None else None
    if replica is not None and replica.ended_at is not None:
        exited = f" with {exit_sentence(replica.exit)}" if replica.exit is not None else ""
        yield f"ended {clock(replica.ended_at, context.now, context.zone)}{exited}"
    elif row.started_at is not None:
        yield f"running since {clock(row.started_at, context.now, context.zone)}"
    if row.held_until is not None:
        yield f"held until {clock(row.held_until, context.now, context.zone)}"
