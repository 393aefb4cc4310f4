"""Replaces job names, and ids of several tasks, on the command line by job ids before the verb runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId, JobRef, job_words
from cockpit.model.names import free_name
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.requests import RequestIds
from cockpit.present.folding import group_of
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from cockpit.headless.services import Call
    from cockpit.model.jobrow import JobRow
    from cockpit.model.requests import RequestOutcome

MOST_NAMED = 5
"""Most ids that an error lists."""


async def resolve_jobs(call: Call) -> RequestOutcome | None:
    """Replace names and folded ids (`34_[0-1]`) by ids in the arguments `job` and `jobs`.

    A job that the same command changed before under its `--request-id` keeps its name: by now another job may have the
    name, or none. The outcome is in `call.outcomes`; it is returned where it answers the whole command.

    Raises `RequestRefused` when no job, or more than one, has the name.
    """
    args = vars(call.args)
    one, several = args.get("job"), args.get("jobs")
    refs = [each for each in [one, *(several if isinstance(several, list) else [])] if isinstance(each, JobRef)]
    # Most commands name jobs by id, and read no rows for that.
    if not any(each.name or each.tasks for each in refs):
        return None
    if isinstance(one, JobRef) and one.name and call.changes_its_job:
        outcome = await call.outcome_of_change(1)
        if outcome is not None and outcome.refusal is None:
            return outcome
    # Ended jobs too: a name may be that of the last one that had it.
    rows = await call.backend.jobs(ended=True) if any(each.name for each in refs) else []
    if isinstance(one, JobRef):
        call.args.job = _by_id(one, rows)
    if isinstance(several, list):
        # Numbered after unfolding, so that a repetition gives each task the same number again.
        tasks = [task for each in several for task in _tasks(each)]
        call.args.jobs = [await _resolve_unless_changed(call, number, ref, rows) for number, ref in enumerate(tasks, 1)]
    return None


async def submitted_before(call: Call, outcome: RequestOutcome) -> list[tuple[JobId, str]]:
    """Return id and name of each job that a request submitted and that is still listed; an array is one job."""
    jobs = frozenset(outcome.jobs)
    rows = await call.backend.jobs(ended=True) if jobs else []
    return sorted({group_of(row) or row.id: row.name for row in rows if row.id in jobs}.items())


async def _resolve_unless_changed(call: Call, number: int, ref: JobRef, rows: Sequence[JobRow]) -> JobRef:
    """Return the reference with the job's id, or with its name where the change of this number has its outcome."""
    # Only a change that names a job by its name needs the earlier answer; an id names the same job for ever.
    outcome = await call.outcome_of_change(number) if ref.name and call.changes_each_job else None
    if outcome is not None and outcome.refusal is None:
        call.outcomes[number] = outcome
        return ref
    try:
        return _by_id(ref, rows)
    # The earlier refusal is the answer, since by now no job has the name.
    except RequestRefused:
        if outcome is None:
            raise
        call.outcomes[number] = outcome
        return ref


async def free_names(
    call: Call, wanted: Sequence[str], choose: Callable[[str, Collection[str]], str] = free_name
) -> list[str]:
    """Return names for new jobs that no live job has.

    A repeat under `--request-id` gets the names that the command chose before, and so is the same request.
    """
    # Otherwise the repetition would find its own job's name taken, choose another, and be another request.
    if len(before := await _names_before(call)) == len(wanted):
        return before
    taken = {row.name for row in await call.backend.jobs()}
    names = []
    for name in wanted:
        names.append(choose(name, taken))
        # Names of the same command count as well, since none of these jobs is in the list yet.
        taken.add(names[-1])
    return names


async def _names_before(call: Call) -> list[str]:
    """Return the names of the jobs that were submitted under the command's `--request-id`; an array's once."""
    request: str | None = getattr(call.args, "request_id", None)
    if request is None:
        return []
    # The ids of one command's changes are consecutive, and the first unknown one is the end.
    ids, jobs = RequestIds(request), set[int]()
    while (outcome := await call.backend.request(ids.next())).known:
        jobs.update(outcome.jobs)
    rows = await call.backend.jobs(ended=True) if jobs else []
    return list(dict.fromkeys(row.name for row in sorted(rows, key=lambda row: row.id) if row.id in jobs))


def _by_id(ref: JobRef, rows: Sequence[JobRow]) -> JobRef:
    return replace(ref, job=job_of_name(ref.name, rows), name="") if ref.name else ref


def _tasks(ref: JobRef) -> Iterator[JobRef]:
    """Yield a reference for each task that the reference names."""
    if not ref.tasks:
        yield ref
    for task in ref.tasks:
        yield replace(ref, task=task, tasks=())


def job_of_name(name: str, rows: Iterable[JobRow]) -> JobId:
    """Return the job of this name, or of a project and a name (`team-a/train`): one that has not ended, else one that
    has. The tasks of an array are one job.

    Raises `RequestRefused` when there is none, or more than one.
    """
    project, slash, plain = name.rpartition("/")
    named = [row for row in rows if row.name == plain and (not slash or row.project == project)]
    # A live job before ended ones of its name, which is what the user most likely means.
    live = {group_of(row) or row.id for row in named if row.ended_at is None}
    matches = sorted(live or {group_of(row) or row.id for row in named})
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, f"No job is named {safe(name)}. See: cockpit jobs --all"))
    ids = ", ".join(job_words(each) for each in matches[:MOST_NAMED]) + (", …" if len(matches) > MOST_NAMED else "")
    raise RequestRefused(
        Refusal(RefusalKind.INVALID, f"{len(matches)} jobs are named {safe(name)}: {ids}. Name the job by its id.")
    )
