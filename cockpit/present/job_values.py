"""Values of a job row as text: sentences, states, times and amounts, for every view that shows jobs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Final

from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import Held, NotEvaluated, Reason, WouldDelay
from cockpit.model.staging import Progress
from cockpit.present import units
from cockpit.present.columns import Context, Fraction
from cockpit.present.folding import FoldedRow, progress
from cockpit.present.moments import iso
from cockpit.present.phrases import listed
from cockpit.present.reasons import REASON_TYPES, START_UNKNOWN, reason_sentence, reason_wording
from cockpit.present.safe import safe
from cockpit.present.states import (
    brief_end,
    copying_sentence,
    end_sentence,
    ending_sentence,
    failed_replica,
    retry_words,
    state_words,
)
from cockpit.present.workers import below_min, leaving_words, short_of_workers


def why(row: JobRow, context: Context) -> str | None:
    """Return the sentence that says why the job waits, is being ended, or how it ended. None: nothing to say."""
    sentence = _own_why(row, context)
    if row.retries is None:
        return sentence
    return f"{sentence}; {retry_words(row.retries)}" if sentence else retry_words(row.retries)


def _own_why(row: JobRow, context: Context) -> str | None:
    """Return the sentence without the retries; None: nothing to say."""
    if row.reason is not None:
        sentence = reason_sentence(row.reason, context.now, context.zone)
        suspended = below_min(row, context.now, context.zone)
        unknown = failure_words(row)
        return "; ".join(filter(None, (suspended, sentence, unknown)))
    leaves = leaving_words(row, context.now)
    # In the order of time: a reason while it waits, then why it is being ended, then how it ended.
    if row.ending is not None:
        return "; ".join(filter(None, (ending_sentence(row, row.ending), leaves, failed_replica(row))))
    if row.end_cause is not None:
        return end_sentence(row, row.end_cause) or None
    if row.state is _STAGING:
        return copying_sentence(row.staged)
    short = short_of_workers(row) if row.workers is not None else None
    return "; ".join(filter(None, (leaves, short, failed_replica(row)))) or None


def brief_why(row: JobRow, context: Context) -> str:
    """Return `why` as one short clause for a cell of a list; empty: nothing to say."""
    if row.reason is not None:
        first = reason_wording(row.reason, context.now, context.zone).brief
    elif row.ending is None and row.end_cause is not None:
        first = brief_end(row, row.end_cause)
    else:
        first = (_own_why(row, context) or "").partition("; ")[0]
    return "; ".join(filter(None, (first, "" if row.retries is None else retry_words(row.retries))))


def failure_words(row: JobRow) -> str:
    """Return why the job's start is not known; empty where it is, or its reason says it already."""
    failure = row.reason.failure if isinstance(row.reason, NotEvaluated) else ""
    return f"{START_UNKNOWN}: {safe(row.failure)}" if row.failure and not failure else ""


def copied_json(progress: Progress | None) -> dict[str, int | None] | None:
    if progress is None:
        return None
    figures = {"done_bytes": progress.done, "total_bytes": progress.total, "bytes_per_second": progress.rate}
    return {**figures, "seconds_left": progress.seconds_left}


def state_text(row: JobRow, context: Context) -> str:
    return state_words(row.state, row.held_until, context.now, ending=row.ending is not None)


def states_text(row: JobRow, context: Context) -> str:
    """Return the state, such as `queued`; for a folded array the number of tasks in each: `2 running, 7 queued`."""
    if isinstance(row, FoldedRow):
        gone = (f"{row.gone} ended",) if row.gone else ()
        return ", ".join((*(f"{count} {state}" for state, count in row.states), *gone))
    return state_text(row, context)


_STAGING: Final = JobState.STAGING
_SUSPENDED: Final = JobState.SUSPENDED  # a member costs a look-up in each of a hundred thousand rows


def elapsed_seconds(row: JobRow, context: Context) -> int | None:
    """Return the seconds that the job has run, or ran, without its suspended time; None: it has not started."""
    if row.started_at is None:
        return None
    # Suspended time does not count.
    until = row.ended_at or (row.state_since if row.state is _SUSPENDED else context.now)
    ran = until - row.started_at - row.suspended_ms
    return ran // 1000 if ran > 0 else 0


def wait_seconds(row: JobRow, context: Context) -> int:
    """Return the seconds from submission to the start, to the end of a job that never started, or to now."""
    # A job that was cancelled while it waited waited until its end.
    until = row.started_at or row.ended_at or context.now
    # Not below 0: the clocks of this machine and of the cluster may differ.
    return (until - row.submitted_at) // 1000 if until > row.submitted_at else 0


def is_running(row: JobRow) -> bool:
    return row.started_at is not None and row.ended_at is None


def is_waiting(row: JobRow) -> bool:
    return row.started_at is None and row.ended_at is None


has_hold: Final = attrgetter("held_until")
"""Whether the job's containers are held, so that its cells count down. An attribute getter, as it is called for a
hundred thousand rows."""


def cards(row: JobRow, _: Context) -> int | float:
    return 0 if row.waits_until is not None else units.cards(row.card_milli)


def amount(field: str) -> Callable[[JobRow, Context], int]:
    """Return a function that returns the amount in `nodes`, `cpus` or `memory_mib`: what the job has, or requests while
    it is queued.

    An elastic job that is suspended below its minimum (`waits_until`) has released its workers, so that its amounts are
    0.
    """
    value = attrgetter(field)
    return lambda row, _: 0 if row.waits_until is not None else value(row)


def node_spec(row: JobRow, _: Context) -> str:
    """Return the job's request per node, as one text to search in."""
    # The row has sums over all nodes; users ask for so much on each.
    nodes = max(row.nodes, 1)
    named = f"{safe(row.spec_name)}: " if row.spec_name else ""
    per_node = f"{named}{units.counted(row.cpus // nodes, 'CPU')}, {units.memory(row.memory_mib // nodes)}"
    if not row.card_milli:
        return per_node
    return f"{per_node}, {units.counted_cards(row.card_milli // nodes, listed(row.card_models, 'or'))}"


@lru_cache(maxsize=4096)
def reason_json(reason: Reason) -> Reason | dict[str, object]:
    """Return the reason for JSON with its `type`; moments become ISO 8601, and all other reasons are encoded as they
    are."""
    if isinstance(reason, Held):
        return {"type": "held", "by": reason.by, "since": iso(reason.since) if reason.since is not None else None}
    if isinstance(reason, WouldDelay):
        return {"type": "would_delay", "ahead": reason.ahead, "reserved_at": iso(reason.reserved_at)}
    return reason


def bounds_json(bounds: tuple[int, int, int] | None) -> dict[str, int] | None:
    """Return the bounds of an elastic job with the names of a job file; None: not elastic."""
    return dict(zip(("min_workers", "workers", "max_workers"), bounds, strict=True)) if bounds is not None else None


def progress_of(row: JobRow, _: Context) -> Fraction | None:
    counts = progress(row)
    return None if counts is None else Fraction(*counts)


def reason_type(row: JobRow, _: Context) -> str:
    return "–" if row.reason is None else str(row.reason.__struct_config__.tag)


WORKERS_SCHEMA: Final = {
    "type": ["object", "null"],
    "properties": {name: {"type": "integer"} for name in ("min_workers", "workers", "max_workers")},
}
STAGED_SCHEMA: Final = {
    "type": ["object", "null"],
    "properties": {
        **{name: {"type": "integer"} for name in ("done_bytes", "total_bytes", "bytes_per_second")},
        "seconds_left": {"type": ["integer", "null"]},
    },
}
REASON_SCHEMA: Final = {
    "type": ["object", "null"],
    "properties": {"type": {"enum": list(REASON_TYPES)}},
    "required": ["type"],
}
