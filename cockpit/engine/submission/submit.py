"""Accepts submissions and edits of jobs: a request as a whole or not at all, with every error in the refusal.

A submission takes these steps; an edit is checked in the same way:

1. The number of live jobs is checked.
2. `Admission` checks each job of the request in order, so that earlier jobs count for the limits of later ones.
3. Any error refuses the whole request.
4. `_Submission` gives ids to the jobs, expands arrays into tasks, and checks which dependencies are met already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.access import Actor
from cockpit.engine.arrays import expanded, size, taskwise
from cockpit.engine.dependencies import DependencyOutcomes, Waiter, settled
from cockpit.engine.submission.admission import Admission, AdmissionResult
from cockpit.model import events
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
from cockpit.model.masking import restored_spec
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import JobKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.job import Job, Submitter
    from cockpit.model.reasons import Reason
    from cockpit.model.spec import JobSpec

MAX_JOBS = 100_000
"""The most live jobs at once. More submissions are refused, since the engine would become slow for everyone."""

MOST_ERRORS = 1000
"""The most errors in one refusal: the answer must fit into one frame of the protocol."""


def submit(
    machine: Machine,
    specs: Sequence[JobSpec],
    actor: Actor,
    *,
    now: Millis | None = None,
    remembered: Iterable[Job] = (),
    part: bool = False,
) -> list[EventBody] | Refusal:
    """Return the events that queue all of `specs`, in order, or the refusal of the whole request.

    Job ids follow the last one used; the tasks of an array have consecutive ids, the first of which is the array's.

    1. Refuse an empty request, and one that would exceed `MAX_JOBS`.
    2. Check the jobs in order: each counts for the names and limits of those after it.
    3. Refuse the request as a whole where any job has an error, with the errors of all of them.
    4. Make the events of all jobs.

    `now`: the time of the request; by default that of the last event.
    `remembered`: jobs that dependencies name and that only the accounting has (`admission.named_elsewhere`), with all
    tasks of an array.
    `part`: the jobs are parts of a fleet's jobs, which were checked as a whole there.
    """
    # 1. The size of the request.
    if not specs:
        return Refusal(RefusalKind.INVALID, "Nothing to submit: the request holds no job.")
    if len(machine.state.jobs) + sum(map(size, specs)) > MAX_JOBS:
        return Refusal(
            RefusalKind.UNAVAILABLE,
            f"The engine holds {len(machine.state.jobs)} jobs and takes at most {MAX_JOBS}; wait until some end.",
        )
    now = machine.state.at if now is None else now
    remembered = tuple(remembered)
    admission = Admission(machine, actor, now, remembered, part=part)
    lines: list[str] = []
    reasons: list[tuple[str, Reason]] = []
    # 2. Each job: all are checked before any is refused, so that the user gets all errors at once.
    admitted = [admission.admit(spec) for spec in specs]
    # 3. Errors. Where the request has one job, its fields need no prefix.
    for index, each in enumerate(admitted):
        prefix = f"jobs[{index}]." if len(specs) > 1 else ""
        lines += [prefix + error for error in each.errors]
        reasons += [(prefix + path, reason) for path, reason in each.reasons]
    if lines or reasons:
        return Refusal(RefusalKind.INVALID, "\n".join(_shortened(lines)), tuple(reasons[:MOST_ERRORS]))
    # 4. The events.
    return _Submission(machine, actor.who, DependencyOutcomes(remembered=remembered)).events(admitted)


def edit(
    machine: Machine,
    job: Job,
    spec: JobSpec,
    *,
    actor: Actor | None = None,
    now: Millis | None = None,
    remembered: Iterable[Job] = (),
) -> list[EventBody] | Refusal:
    """Return the events that give a queued job another specification, or the refusal.

    The job keeps its id, project and position in the queue. Account, QOS and partitions that the new specification
    does not name are chosen again. `actor`: the user who edits it; by default its owner.
    """
    if job.state is not JobState.QUEUED:
        return Refusal(RefusalKind.CONFLICT, f"Job {job.shown_id} is {job.state}; only a queued job can be edited.")
    # Other users were sent the job with its secrets masked, and leave them as they are.
    spec = restored_spec(spec, job.spec)
    now = machine.state.at if now is None else now
    remembered = tuple(remembered)
    admission = Admission(machine, actor or Actor(job.submitter, admin=False), now, remembered, edited=job)
    # The new spec of a task may name whole arrays in `aftercorr`: they become one task each, as at its submission.
    charged, _, errors, reasons = admission.admit(taskwise(machine, spec, job.array) if job.array else spec)
    errors += _fixed_field_errors(job, spec)
    if errors or reasons:
        return Refusal(RefusalKind.INVALID, "\n".join(errors), tuple(reasons))
    edited = events.JobEdited(job.id, charged.spec, charged.account, charged.qos, charged.partitions)
    if charged.spec.dependencies == job.spec.dependencies and charged.spec.name == job.spec.name:
        return [edited]
    # `never` is False: changed dependencies drop the old verdict, so that a new one may follow.
    waiting = Waiter(job.id, (job.submitter.uid, charged.spec.name))
    same = charged.spec.dependencies == job.spec.dependencies
    # a new name may settle a singleton; dependencies that were met before are not checked again
    conditions = job.waits_for if same else charged.spec.dependencies
    return [edited, *settled(machine, waiting, conditions, DependencyOutcomes(remembered=remembered))]


def _fixed_field_errors(job: Job, spec: JobSpec) -> Iterator[str]:
    """Yield an error for each changed field that an edit must leave as it is."""
    if spec.array is not None:
        yield "array: is fixed once a job is submitted; remove it, or submit another array"
    if spec.kind is not job.spec.kind:
        yield "kind: is fixed once a job is submitted; remove it, or submit another job"
    if spec.script is not None and spec.script == job.spec.script and spec.command != job.spec.command:
        yield "command: the job runs its batch script; change script.text, or remove script"
    if job.kind is JobKind.BATCH and spec.resume is not None:
        yield f"resume: is for regular jobs alone, and {job.id} is a task of a batch; remove it"
    if job.array is not None and spec.name != job.spec.name:
        yield f"name: job {job.shown_id} is a task, and all tasks of an array have its name; leave it as it is"


def _shortened(lines: list[str]) -> list[str]:
    """Return at most `MOST_ERRORS` lines, and one more that counts those left out."""
    more = len(lines) - MOST_ERRORS
    return [*lines[:MOST_ERRORS], f"… and {more} more errors"] if more > 0 else lines


class _Submission:
    """Builds the events of one submission's admitted jobs."""

    def __init__(self, machine: Machine, submitter: Submitter, outcomes: DependencyOutcomes) -> None:
        self._machine = machine
        self._submitter = submitter
        self._outcomes = outcomes
        # From the last id ever used and not from the live jobs: ids are never used again.
        self._next = machine.state.last_job_id + 1
        self._names: set[str] = set()
        """Names of the jobs that come earlier in this submission."""

    def events(self, admitted: Iterable[AdmissionResult]) -> list[EventBody]:
        """Return the events of all jobs, in order."""
        return [event for each in admitted for event in self._events_of(each)]

    def _events_of(self, admitted: AdmissionResult) -> Iterator[EventBody]:
        """Yield the events of one admitted job: of an array, those of all its tasks."""
        charged = admitted.charge
        for spec, array in expanded(self._machine, charged.spec, JobId(self._next)):
            job = JobId(self._next)
            self._next += 1
            # First: the events behind it are about a job that the state must have by then.
            yield events.JobSubmitted(
                job,
                spec,
                self._submitter,
                admitted.project,
                charged.account,
                charged.qos,
                charged.partitions,
                array,
            )
            if spec.hold:
                yield events.JobHeld(job, self._submitter.name)
            if spec.dependencies:
                yield from self._settled_dependencies(job, spec)
            self._names.add(spec.name)

    def _settled_dependencies(self, job: JobId, spec: JobSpec) -> Iterable[EventBody]:
        """Return the events for dependencies that are decided already.

        A singleton that follows a job of the same name in this submission is left open: that job is not in the state
        yet, so that the singleton would seem to be the first of its name.
        """
        decidable = [each for each in spec.dependencies if each.job or spec.name not in self._names]
        return settled(self._machine, Waiter(job, (self._submitter.uid, spec.name)), decidable, self._outcomes)
