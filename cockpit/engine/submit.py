"""Accepting submissions: all of a request or nothing of it, with every error told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.launch.checks import submission_errors
from cockpit.model import events
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.reasons import NeverFits, Resource
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.sched.feasible import never_fits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.job import Job, Submitter
    from cockpit.model.reasons import Reason
    from cockpit.model.spec import JobSpec

MAX_JOBS = 100_000
"""Live jobs at once; beyond it submissions are refused rather than everything getting slow."""

MOST_ERRORS = 1000
"""Told of one request: the answer must fit into a frame."""

_FIELD = {
    Resource.CPUS: "cpus",
    Resource.MEMORY: "memory",
    Resource.CARDS: "cards",
    Resource.CARD_SHARE: "cards",
}


def submit(machine: Machine, specs: Sequence[JobSpec], submitter: Submitter) -> list[EventBody] | Refusal:
    """The events that queue all of `specs`, in order; ids follow the last one given out."""
    if not specs:
        return Refusal(RefusalKind.INVALID, "Nothing to submit: the request holds no job.")
    if len(machine.state.jobs) + len(specs) > MAX_JOBS:
        return Refusal(
            RefusalKind.UNAVAILABLE,
            f"The engine holds {len(machine.state.jobs)} jobs and takes at most {MAX_JOBS}; wait until some end.",
        )
    lines: list[str] = []
    reasons: list[tuple[str, Reason]] = []
    taken: set[tuple[str, str]] = set()
    for index, spec in enumerate(specs):
        prefix = f"jobs[{index}]." if len(specs) > 1 else ""
        errors = _errors(machine, spec, submitter, taken)
        lines += [prefix + error for error in errors]
        if not errors and (reason := never_fits(spec, machine.state.nodes)) is not None:
            reasons.append((prefix + _field(spec, reason), reason))
        taken.add((_project(spec, submitter), spec.name))
    if lines or reasons:
        return Refusal(RefusalKind.INVALID, "\n".join(_bounded(lines)), tuple(reasons[:MOST_ERRORS]))
    return _events(machine, specs, submitter)


def edit(machine: Machine, job: Job, spec: JobSpec) -> list[EventBody] | Refusal:
    """Let a queued job ask for something else; it keeps its id, its project and its place in the queue."""
    if job.state is not JobState.QUEUED:
        return Refusal(RefusalKind.CONFLICT, f"Job {job.id} is {job.state}; only a queued job can be edited.")
    other = machine.live_job_named(job.project, spec.name)
    errors = submission_errors(spec)
    if other is not None and other != job.id:
        errors.append(_taken(machine, other, job.submitter))
    reason = None if errors else never_fits(spec, machine.state.nodes)
    if errors or reason is not None:
        reasons = ((_field(spec, reason), reason),) if reason is not None else ()
        return Refusal(RefusalKind.INVALID, "\n".join(errors), reasons)
    return [events.JobEdited(job.id, spec, job.account, job.qos, job.partitions)]


def _bounded(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_ERRORS
    return [*lines[:MOST_ERRORS], f"… and {more} more errors"] if more > 0 else lines


def _project(spec: JobSpec, submitter: Submitter) -> str:
    return spec.project or submitter.name


def _errors(machine: Machine, spec: JobSpec, submitter: Submitter, taken: set[tuple[str, str]]) -> list[str]:
    errors = submission_errors(spec)
    project = _project(spec, submitter)
    other = machine.live_job_named(project, spec.name)
    if other is not None:
        errors.append(_taken(machine, other, submitter))
    elif (project, spec.name) in taken:
        errors.append(f"name: another job of this submission has the same name in project {project}")
    return errors


def _taken(machine: Machine, other: JobId, submitter: Submitter) -> str:
    """Of another user's job nothing is told but that there is one."""
    job = machine.state.jobs[other]
    if job.submitter.uid != submitter.uid:
        return f"name: another job of project {job.project} already has this name; choose another"
    return f"name: job {other} of project {job.project} already has this name; choose another or end that job"


def _field(spec: JobSpec, reason: Reason) -> str:
    if isinstance(reason, NeverFits) and reason.resource is not None:
        index = 0 if len(spec.specs) == 1 else "*"
        return f"specs[{index}].{_FIELD[reason.resource]}"
    return "nodes" if isinstance(reason, NeverFits) else "node_names" if spec.node_names else "specs"


def _events(machine: Machine, specs: Sequence[JobSpec], submitter: Submitter) -> list[EventBody]:
    decided: list[EventBody] = []
    for job, spec in enumerate(specs, machine.state.last_job_id + 1):
        decided.append(events.JobSubmitted(JobId(job), spec, submitter, _project(spec, submitter)))
        if spec.hold:
            decided.append(events.JobHeld(JobId(job), submitter.name))
    return decided
