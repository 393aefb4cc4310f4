"""Explains why a job waits: Slurm's own reason, with figures from the embedded scheduler and from Slurm's lists.

1. Take Slurm's reason and expected start from the job's row.
2. Let the embedded scheduler plan a copy of the cluster and explain the same job.
3. If both give the same reason, use the scheduler's, which has figures. Otherwise keep Slurm's, and add the figures of
   the limit or the licence that it names.
4. Leave out the scheduler's forecast where it cannot be right: for jobs that never start by Slurm's reason, for jobs
   that it would start now although Slurm does not, and for jobs whose tasks Slurm may spread freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import licences
from cockpit.backends.slurm.mapping.cluster import ClusterLists, spec_shared_out
from cockpit.backends.slurm.mapping.ids import slurm_id
from cockpit.backends.slurm.mapping.jobparts import spreads_freely
from cockpit.backends.slurm.mapping.jobs import LookedUpJob
from cockpit.backends.slurm.mapping.reasons import never_starts, with_figures
from cockpit.backends.slurm.past import look_up
from cockpit.backends.slurm.reason_details import limit_of_code, unavailable_nodes
from cockpit.backends.slurm.rows import explanation, holdings, task_row
from cockpit.engine.prediction import MOST_HOLDERS, condition_of
from cockpit.errors import CockpitError, RequestRefused
from cockpit.model.forecast import Condition, Forecast, Outlook
from cockpit.model.ids import JobId
from cockpit.model.jobrow import JobRow
from cockpit.model.reasons import DependencyNever, Reason, SchedulerReason, WaitsForJob
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.sched.rules.holders import holders

if TYPE_CHECKING:
    from cockpit.backends.slurm.planning_mirror import PlanningMirror
    from cockpit.backends.slurm.reading import Reading
    from cockpit.model.reasons import Explanation

SLURM = "Slurm"
UNJUDGED = frozenset({"None", ""})
"""Slurm's reasons of jobs that it has not considered yet. Jobs with any other reason do not start at present, even if
the embedded scheduler, which may not know all of Slurm's rules, would start them."""


async def outlook(
    reading: Reading, mirror: PlanningMirror, known: LookedUpJob, rows: Mapping[JobId, JobRow]
) -> Outlook:
    """Return the explanation and the forecast of a queued job. Refused for a job that is not queued."""
    row, told = _waiting(known, rows)  # step 1
    everything = await reading.everything(closely=True)
    core = await (await mirror.judge(everything)).explain(known.alike)  # step 2
    judged = core.explanation.reason if core.explanation is not None else None
    # Step 3
    reason, held, in_all = with_figures(told.reason, judged), core.holders, core.holders_in_all
    if reason is not judged:
        reason, held = await _limited(reading, mirror, everything, known, reason)
        in_all = len(held)
    # Step 4
    never = known.listed is not None and never_starts(known.listed)
    shared_out = known.listed is not None and spec_shared_out(everything, known.listed) is not None
    equal = (
        known.listed is not None and spreads_freely(known.listed.fields) and not shared_out
    )  # to the core, it is not
    unknown = never or equal or (core.forecast.now and known.listed is not None and known.listed.code not in UNJUDGED)
    named = (*told.ahead, *held[:MOST_HOLDERS])
    return replace(
        core,
        forecast=Forecast() if unknown else core.forecast,
        job=row.id,
        position=told.position,
        explanation=replace(told, reason=reason),
        unavailable=core.unavailable or tuple(unavailable_nodes(reason, known.job, everything)),
        holders=held[:MOST_HOLDERS],
        holders_in_all=in_all,
        condition=await _condition(reading, reason) or core.condition,
        what_ifs=() if equal or shared_out else core.what_ifs,
        named=(*core.named, *holdings(named, rows, {each.job for each in core.named})),
        told_at=row.starts_by,
        told_by=SLURM,
    )


def _waiting(known: LookedUpJob, rows: Mapping[JobId, JobRow]) -> tuple[JobRow, Explanation]:
    row = task_row(rows[known.listed.id], known.job) if known.listed is not None else None
    told = explanation(row, rows) if row is not None else None
    if row is None or told is None:
        message = f"Job {slurm_id(known.job.id)} is {known.job.state}; only a queued job waits for something."
        raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
    return row, told


async def _limited(
    reading: Reading, mirror: PlanningMirror, everything: ClusterLists, known: LookedUpJob, reason: Reason
) -> tuple[Reason, tuple[JobId, ...]]:
    """Return Slurm's reason with the figures of the limit or licences that it names, and the jobs that use them."""
    if isinstance(reason, SchedulerReason) and reason.code.startswith("Licenses") and known.listed is not None:
        wanted = licences.asked(known.listed.fields)
        about = licences.figures(await reading.licences(), wanted)
        return SchedulerReason(reason.code, about), licences.holders(everything.jobs, wanted)
    seen = await mirror.snapshot(everything)
    if isinstance(reason, SchedulerReason):
        reason = limit_of_code(seen, known.job, reason.code) or reason
    return reason, holders(seen, known.job, reason)


async def _condition(reading: Reading, reason: Reason) -> Condition | None:
    """Return the state of the job that a dependency waits for; None if Slurm has forgotten it."""
    if not isinstance(reason, WaitsForJob | DependencyNever) or not reason.job:
        return None
    try:
        return condition_of((await look_up(reading, reason.job, reason.task)).job)
    except CockpitError:
        return None
