"""Makes a snapshot of a Slurm cluster: the state for the scheduler, and Slurm's own reasons, starts and priorities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.cluster import state
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.reasons import never_starts, reason
from cockpit.backends.slurm.ranking import printed_of, site_factors
from cockpit.formats.snapshotfile import SchedulerReport, Snapshot
from cockpit.model.cluster import Priority, Reservation
from cockpit.model.ids import JobId, Millis
from cockpit.model.priority import Breakdown, FactorName

if TYPE_CHECKING:
    from cockpit.backends.slurm.ranking import Printed
    from cockpit.backends.slurm.reading import Reading


async def snapshot(reading: Reading, cluster: str) -> Snapshot:
    """Return a snapshot of the cluster, whose lists are as fresh as the poll intervals allow."""
    everything = await reading.everything(closely=True)
    printed = await reading.priorities()
    reports = dict(_recorded(everything.jobs, printed, {each.name: each for each in everything.reservations}))
    # Slurm's factors are up to PriorityCalcPeriod old. To compute the same figures the scheduler must take the ages of
    # that moment.
    counted = counted_at(everything.jobs, printed, everything.rules.priority, everything.at)
    everything = everything._replace(counted_at=counted, site_factors=site_factors(printed))
    whole = state(everything, as_ranked=False)
    return Snapshot(cluster=cluster, at=everything.at, scheduler="Slurm", reports=reports, state=whole)


def _recorded(
    jobs: Iterable[Listed], printed: Printed, reservations: Mapping[str, Reservation]
) -> Iterable[tuple[JobId, SchedulerReport]]:
    """Yield what Slurm reports of each pending job, and of each task of an array."""
    for each in jobs:
        for job in each.each() if each.waits else ():
            own = tuple(replace(one, job=job.id) for one in printed_of(job.id, printed))
            yield (
                job.id,
                SchedulerReport(
                    reason=reason(each, reservations),
                    starts_at=None if never_starts(each) else each.starts_at,
                    priorities=own,
                ),
            )


def counted_at(jobs: Iterable[Listed], printed: Printed, priority: Priority, now: Millis) -> Millis | None:
    """Return when Slurm last computed the age factors, estimated from the factors that sprio prints; None if unknown.

    An age factor is printed as a rounded number, so each job limits that moment to an interval. The result is the
    middle of the intersection of all these intervals.
    """
    # The search begins two periods back, one more than a controller in time needs.
    earliest, latest = now - 2000 * priority.calc_period_seconds, int(now)
    weight, whole = priority.weights.age, 1000 * priority.max_age_seconds
    for each in jobs:
        age, since = _age(printed_of(each.id, printed)), each.at("AccrueTime")
        if age is None or since is None or not 0 <= age < weight:  # at its maximum an age says nothing more
            continue
        earliest = max(earliest, int(since + (age - 0.5) / weight * whole)) if age else earliest
        latest = min(latest, int(since + (age + 0.5) / weight * whole))
    return Millis((earliest + latest) // 2) if earliest <= latest else None


def _age(breakdowns: Iterable[Breakdown]) -> float | None:
    return next((part.contribution for each in breakdowns for part in each.parts if part.name is FactorName.AGE), None)
