"""The ways back from acts on jobs: what each of them does to undo the act, and why there is none."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from cockpit.model.asking import SiteFactor, WantedLimit
from cockpit.model.capabilities import Ability
from cockpit.model.directives import UpdateJob
from cockpit.model.ids import JobId, job_words
from cockpit.model.names import free_name
from cockpit.model.spec import Array, JobKind, PriorityWord
from cockpit.present.folding import task_count
from cockpit.present.safe import safe
from cockpit.present.units import counted
from cockpit.tui.controllers.chosen import named, task_of
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.undo import WayBack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cockpit.model.asking import WantedPriority
    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.jobrow import JobRow
    from cockpit.model.spec import JobSpec
    from cockpit.tui.cockpit import Cockpit

NO_UNREQUEUE: Final = "A requeued job begins anew: what it did before is kept only where it saved it. x stops it."
NO_SHORTER_HOLD: Final = "A hold is extended only: it can be ended before its time, which removes the container."
NO_CONTAINER: Final = "The container of an ended hold is gone; its output and logs stay."
NO_DELETED: Final = "A deleted job is gone with its logs; accounting keeps its record."
NO_UNBLOCK: Final = "Nodes come onto a block list by themselves, when workers fail there."


async def of_cancel(app: Cockpit, rows: Sequence[JobRow]) -> WayBack | str:
    """Return the way back from stopping these jobs, which submits them again. Call it before they are stopped.

    Their specs are fetched now: some clusters forget a job that is stopped.
    """
    user = app.state.context().user
    # Submitted by another user they would run with that user's rights, files and account.
    others = [row for row in rows if row.user != user]
    if others:
        return f"Only {safe(others[0].user)} can submit {named(others[:1])} again: as yours it would be another job."
    specs = [await _spec_of(app, tasks) for tasks in _by_array(rows)]
    count = sum(map(task_count, rows))

    async def submit() -> str:
        # A job that is still ending keeps its name until then.
        taken = {row.name for row in app.state.job_rows.list.rows() if row.ended_at is None}
        jobs = await app.backend.submit([replace(spec, name=free_name(spec.name, taken)) for spec in specs])
        app.poller.follow_to(jobs[0])
        ids = ", ".join(map(job_words, jobs))
        return f"submitted again as {ids}; the place in the queue is a new one"

    return WayBack("submits it again" if count == 1 else "submits them again", submit)


def _by_array(rows: Sequence[JobRow]) -> list[list[JobRow]]:
    """Return the rows with the tasks of each array together, in order of the first of each."""
    groups: defaultdict[tuple[bool, JobId], list[JobRow]] = defaultdict(list)
    for row in rows:
        groups[row.array is not None, row.id if row.array is None else row.array.array].append(row)
    return list(groups.values())


async def _spec_of(app: Cockpit, tasks: Sequence[JobRow]) -> JobSpec:
    """Return the spec that submits just these tasks of one array again under their indices, or the one job."""
    first = tasks[0]
    detail = await app.backend.job(first.id, task=task_of(first))
    if first.array is None:
        return detail.job.spec
    indices = sorted(index for row in tasks if row.array for index in row.tasks or (row.array.index,))
    if detail.batch is None or detail.batch.kind is not JobKind.BATCH:
        return replace(detail.job.spec, array=Array(tuple(indices), first.array.at_once))
    # A batch numbers its tasks from 0: those that are left get new numbers, and keep their commands.
    return replace(detail.batch, tasks=tuple(detail.batch.tasks[index - first.array.first] for index in indices))


def of_submission(app: Cockpit, jobs: Sequence[JobId]) -> WayBack:
    """Return the way back from a submission: after a question the jobs are stopped."""
    count = len(jobs)
    which = f"job {job_words(jobs[0])}" if count == 1 else counted(count, "job")

    async def stop() -> str:
        question = f"Stop {which}, which you have just submitted?"
        if not await app.push_screen_wait(Confirm(question, "What it has done so far is lost, unless it saved it.")):
            return ""
        for job in jobs:
            await app.backend.cancel(job)
        return f"stopped {which}"

    return WayBack(f"stops {'it' if count == 1 else 'them'}", stop)


def of_edit(app: Cockpit, job: JobId, name: str, before: JobSpec) -> WayBack:
    """Return the way back from an edit: the spec as it was. `name`: the job in words."""

    async def restore() -> str:
        await app.backend.edit(job, before)
        return f"{name} is as it was"

    return WayBack("restores it", restore)


def of_limit(app: Cockpit, rows: Sequence[JobRow]) -> WayBack | str:
    """Return the way back from another time limit for these jobs, as they were before."""
    without = [row for row in rows if not row.has_time_limit]
    if without:
        return f"There was no time limit on {named(without[:1])}; only an edit removes one again."

    async def restore() -> str:
        for row in rows:
            await app.backend.set_time_limit(row.id, WantedLimit(row.time_limit_seconds), task=task_of(row))
        return f"time limit of {named(rows)} as it was"

    return WayBack("restores it", restore)


async def details_of(app: Cockpit, rows: Sequence[JobRow]) -> dict[JobId, JobDetail]:
    """Fetch these jobs as they are before an act, by id."""
    return {row.id: await app.backend.job(row.id, task=task_of(row)) for row in rows}


def of_priority(
    app: Cockpit, rows: Sequence[JobRow], before: Mapping[JobId, JobDetail], wanted: WantedPriority
) -> WayBack | str:
    """Return the way back from this priority for these jobs; `before`: what they were, by id."""
    is_slurm = app.backend.capabilities_for(row.id for row in rows).has(Ability.UPDATE)
    # Slurm tells no job's own number from a computed one, so that the former one could never be computed again.
    if is_slurm and isinstance(wanted, int):
        return "Slurm keeps a priority that was set by number; it computes one again when the job is submitted anew."

    async def restore() -> str:
        for row in rows:
            # A word is the name of a QOS there, and the former QOS may have any name.
            if is_slurm and isinstance(wanted, PriorityWord):
                await app.backend.direct(UpdateJob(row.id, {"QOS": row.qos}, task_of(row)))
            else:
                former = _former_priority(before[row.id], wanted)
                await app.backend.set_priority(row.id, former, task=task_of(row))
        return f"priority of {named(rows)} as it was"

    return WayBack("restores it", restore)


def _former_priority(detail: JobDetail, wanted: WantedPriority) -> WantedPriority:
    """Return what restores the priority of this job as it was before `wanted` was set."""
    if isinstance(wanted, SiteFactor):
        return SiteFactor(detail.job.site_factor)
    # A word removes a number, also the one that `wanted` is.
    return detail.job.spec.priority if detail.job.direct_priority is None else detail.job.direct_priority
