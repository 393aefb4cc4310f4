"""The measured use of a running job, and warnings while the user can still act."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.model.job import JobState
from cockpit.present import units
from cockpit.present.events.alerts import slow_sentence
from cockpit.present.job_values import elapsed_seconds
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT, MUTED, Line, Span, line
from cockpit.present.training import training_brief

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail, ReplicaUse
    from cockpit.model.jobrow import JobRow
    from cockpit.model.node import Allocation
    from cockpit.present.columns import Context

SOON_SECONDS: Final = 300
SOON_PART: Final = 0.05
"""Part of the time limit that counts as soon, where it is longer than `SOON_SECONDS`."""
SOON_MOST: Final = 0.2
"""Largest part of the time limit that counts as soon: a short job is not warned of from its start."""
NEARLY_ALL: Final = 0.9
"""Part of a replica's memory limit at which a warning is shown."""
SOFT: Final = "soft"
"""Prefix of limits that no cgroup enforces."""
NO_CONTAINER: Final = "plain processes, not a container"
"""Words in place of the limits for a job that runs without a container."""


def running_lines(row: JobRow, detail: JobDetail | None, context: Context) -> Iterator[Line]:
    """Yield harmless lines: warnings first, then the progress of a training, then the use and the limits of the replica
    whose memory is fullest."""
    measured = list(_measured(detail))
    for sentence in (*_of_speed(row), *_of_time(row, context), *_of_memory(measured), *_of_limits(detail)):
        yield line(Span(f"{INDENT}⚠ {sentence}", "warning"))
    if detail is not None:
        yield from (line(f"{INDENT}{each}") for each in training_brief(detail, context))
    if measured:
        use, place = max(measured, key=_fullness)
        yield tuple(_uses(use, place, several=len(measured) > 1))


def _measured(detail: JobDetail | None) -> Iterator[tuple[ReplicaUse, Allocation]]:
    if detail is not None and detail.job.attempt is not None:
        places = {each.rank: each for each in detail.job.attempt.placement}
        yield from ((use, places[use.rank]) for use in detail.use if use.rank in places)


def _fullness(measured: tuple[ReplicaUse, Allocation]) -> float:
    use, place = measured
    return (use.memory_mib or 0) / max(place.memory_mib, 1)


def _uses(use: ReplicaUse, place: Allocation, *, several: bool) -> Iterator[Span]:
    if use.memory_mib is not None:
        yield Span(f"{INDENT}uses ", MUTED)
        most = f"/{units.memory(place.memory_mib)}" if place.memory_mib else ""
        yield Span(f"{units.memory(use.memory_mib)}{most}")
        yield Span(f" of memory{f' in its fullest replica, {use.rank}' if several else ''}", MUTED)


def _of_speed(row: JobRow) -> Iterator[str]:
    if row.slow is not None:
        yield slow_sentence(*row.slow)


def _of_time(row: JobRow, context: Context) -> Iterator[str]:
    elapsed = elapsed_seconds(row, context)
    if elapsed is None or row.state is not JobState.RUNNING:
        return
    limit = row.time_limit_seconds
    left = max(limit - elapsed, 0)
    if left <= min(max(SOON_SECONDS, SOON_PART * limit), SOON_MOST * limit):
        yield f"its time limit ends it in {units.spoken(left // 60 * 60 or left)}"


def _of_memory(measured: list[tuple[ReplicaUse, Allocation]]) -> Iterator[str]:
    for use, place in measured:
        # The peak, not the present use: what a job has needed once it may need again.
        if place.memory_mib and (use.peak_memory_mib or 0) >= NEARLY_ALL * place.memory_mib:
            most, has = units.memory(use.peak_memory_mib or 0), units.memory(place.memory_mib)
            yield f"replica {use.rank} has had {most} of its {has} of memory; beyond that it is killed"


def _of_limits(detail: JobDetail | None) -> Iterator[str]:
    attempt = detail.job.attempt if detail is not None else None
    # All replicas run under the same kind of limits.
    limits = next((each.limits for each in attempt.replicas if each.limits), "") if attempt is not None else ""
    if NO_CONTAINER in limits:
        yield f"it has no container ({safe(limits)})"
    elif limits.startswith(SOFT):
        yield f"its limits are not all enforced ({safe(limits)})"
