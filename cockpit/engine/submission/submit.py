"""Accepting submissions and edits: all of a request or nothing of it, with every error told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.access import Actor
from cockpit.engine.arrays import expanded, size, taskwise
from cockpit.engine.dependencies import DependencyOutcomes, Waiter, settled
from cockpit.engine.submission.admission import Admission, Admitted
from cockpit.model import events
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import JobState
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
"""Live jobs at once; beyond it submissions are refused rather than everything getting slow."""

MOST_ERRORS = 1000
"""Told of one request: the answer must fit into a frame."""


def submit(
    machine: Machine,
    specs: Sequence[JobSpec],
    actor: Actor,
    *,
    now: Millis | None = None,
    remembered: Iterable[Job] = (),
    part: bool = False,
) -> list[EventBody] | Refusal:
    """The events that queue all of `specs`, in order; ids follow the last one given out, a task's its array's.

    `now`: by default the moment of the last event. `remembered`: jobs that conditions name and that have left the live
    state (`admission.named_elsewhere`), of an array all tasks. `part`: a fleet hands over what it has divided.
    """
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
    admitted = [admission.admit(spec) for spec in specs]
    for index, each in enumerate(admitted):
        prefix = f"jobs[{index}]." if len(specs) > 1 else ""
        lines += [prefix + error for error in each.errors]
        reasons += [(prefix + path, reason) for path, reason in each.reasons]
    if lines or reasons:
        return Refusal(RefusalKind.INVALID, "\n".join(_bounded(lines)), tuple(reasons[:MOST_ERRORS]))
    return _Queueing(machine, actor.who, DependencyOutcomes(remembered=remembered)).events(admitted)


def edit(
    machine: Machine,
    job: Job,
    spec: JobSpec,
    *,
    actor: Actor | None = None,
    now: Millis | None = None,
    remembered: Iterable[Job] = (),
) -> list[EventBody] | Refusal:
    """Let a queued job ask for something else; it keeps its id, its project and its place in the queue. What it leaves
    to the cluster is found anew. `actor`: who edits it; by default its owner."""
    if job.state is not JobState.QUEUED:
        return Refusal(RefusalKind.CONFLICT, f"Job {job.id} is {job.state}; only a queued job can be edited.")
    now = machine.state.at if now is None else now
    remembered = tuple(remembered)
    admission = Admission(machine, actor or Actor(job.submitter, admin=False), now, remembered, edited=job)
    charged, _, errors, reasons = admission.admit(taskwise(machine, spec, job.array) if job.array else spec)
    errors += _fixed(job, spec)
    if errors or reasons:
        return Refusal(RefusalKind.INVALID, "\n".join(errors), tuple(reasons))
    edited = events.JobEdited(job.id, charged.spec, charged.account, charged.qos, charged.partitions)
    if charged.spec.dependencies == job.spec.dependencies and charged.spec.name == job.spec.name:
        return [edited]
    waiting = Waiter(job.id, (job.submitter.uid, charged.spec.name))
    same = charged.spec.dependencies == job.spec.dependencies
    conditions = job.waits_for if same else charged.spec.dependencies
    return [edited, *settled(machine, waiting, conditions, DependencyOutcomes(remembered=remembered))]


def _fixed(job: Job, spec: JobSpec) -> Iterator[str]:
    """What an edit cannot change."""
    if spec.array is not None:
        yield "array: is fixed once a job is submitted; remove it, or submit another array"
    if spec.kind is not job.spec.kind:
        yield "kind: is fixed once a job is submitted; remove it, or submit another job"
    if spec.script is not None and spec.script == job.spec.script and spec.command != job.spec.command:
        yield "command: the job runs its batch script; change script.text, or remove script"
    if job.kind is JobKind.BATCH and spec.resume is not None:
        yield f"resume: is for regular jobs alone, and {job.id} is a task of a batch; remove it"
    if job.array is not None and spec.name != job.spec.name:
        yield f"name: job {job.id} is a task, and all tasks of an array have its name; leave it as it is"


def _bounded(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_ERRORS
    return [*lines[:MOST_ERRORS], f"… and {more} more errors"] if more > 0 else lines


class _Queueing:
    """The events of admitted jobs."""

    def __init__(self, machine: Machine, submitter: Submitter, fates: DependencyOutcomes) -> None:
        self._machine = machine
        self._submitter = submitter
        self._fates = fates
        self._next = machine.state.last_job_id + 1
        self._new: set[str] = set()
        """Names of the jobs before."""

    def events(self, admitted: Iterable[Admitted]) -> list[EventBody]:
        return [event for each in admitted for event in self._of(each)]

    def _of(self, admitted: Admitted) -> Iterator[EventBody]:
        charged = admitted.charge
        for spec, array in expanded(self._machine, charged.spec, JobId(self._next)):
            job = JobId(self._next)
            self._next += 1
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
                yield from self._settled(job, spec)
            self._new.add(spec.name)

    def _settled(self, job: JobId, spec: JobSpec) -> Iterable[EventBody]:
        """A namesake of the same request comes first."""
        alone = [each for each in spec.dependencies if each.job or spec.name not in self._new]
        return settled(self._machine, Waiter(job, (self._submitter.uid, spec.name)), alone, self._fates)
