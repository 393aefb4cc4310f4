"""Conditions on other jobs: what has become of each, at submission and whenever something ends.

A condition on an array is one on all its tasks, unless it names one (`123_4`), as each `aftercorr` of a task does. What
has left the live state has ended; whether some task of an array failed stays known in `ClusterState.failed_tasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cockpit.engine.arrays import task
from cockpit.model import events
from cockpit.model.ids import JobId
from cockpit.model.job import ENDED, Job, JobState
from cockpit.model.spec import Dependency, DependencyKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody

NAMESAKES = JobId(0)
"""What a singleton's condition names."""


class DependencyOutcome(NamedTuple):
    """What has become of a job, or of an array as a whole."""

    over: bool
    failed: JobId | None
    """The job, or one of the tasks, that ended otherwise than well."""


def verdict(dependency: Dependency, fate: DependencyOutcome) -> bool | None:
    """Whether the condition has come true (True), never will (False), or is open (None)."""
    match dependency.kind:
        case DependencyKind.AFTER_ANY:
            return True if fate.over else None
        case DependencyKind.AFTER_NOT_OK:
            return fate.failed is not None if fate.over else None
        case _:
            return False if fate.failed is not None else True if fate.over else None


class Waiter(NamedTuple):
    """A queued job, or one that is about to be."""

    job: JobId
    owner: tuple[int, str]
    """User id and name of the job: those of its namesakes."""
    never: bool = False
    """It is known already that it cannot start."""


def waiter(job: Job) -> Waiter:
    return Waiter(job.id, (job.submitter.uid, job.spec.name), job.never is not None)


def settled(
    machine: Machine, waiting: Waiter, conditions: Iterable[Dependency], fates: DependencyOutcomes
) -> list[EventBody]:
    """What of a job's conditions is decided: at submission, after an edit, or by what has just ended."""
    decided: list[EventBody] = []
    never = waiting.never
    for dependency in dict.fromkeys(conditions):
        if dependency.kind is DependencyKind.SINGLETON:
            first = fates.first_namesake(machine, waiting.owner)
            outcome, because = (True if first is None or first >= waiting.job else None), None
        else:
            fate = fates.of(machine, dependency)
            outcome, because = verdict(dependency, fate), fate.failed
        if outcome:
            decided.append(events.DependencyMet(waiting.job, dependency))
        elif outcome is False and not never:
            decided.append(events.DependencyFailed(waiting.job, dependency, because or dependency.job))
            never = True
    return decided


class DependencyOutcomes:
    """What becomes of jobs: by the machine's state, by what is being decided, and by what accounting remembers."""

    def __init__(
        self,
        ending: Mapping[JobId, JobState] | None = None,
        renamed: Collection[JobId] = (),
        remembered: Iterable[Job] = (),
    ) -> None:
        self._ending = ending or {}
        self._renamed = renamed
        self._remembered: dict[JobId, list[Job]] = {}
        for job in remembered:
            self._remembered.setdefault(job.id, []).append(job)
            if job.array is not None and job.array.array != job.id:
                self._remembered.setdefault(job.array.array, []).append(job)

    def of(self, machine: Machine, dependency: Dependency) -> DependencyOutcome:
        """Of the job, array or task that the dependency names."""
        if dependency.task is None and machine.indices.arrays.of(dependency.job):
            return self._of_array(machine, dependency.job)
        return self._of_jobs(machine, dependency)

    def first_namesake(self, machine: Machine, owner: tuple[int, str]) -> JobId | None:
        """The earliest live job of that owner and name."""
        namesakes = machine.indices.owned.of(owner)
        return min((each for each in namesakes if each not in self._ending and each not in self._renamed), default=None)

    def _of_array(self, machine: Machine, array: JobId) -> DependencyOutcome:
        over = all(task in self._ending for task in machine.indices.tasks.of(array))
        failed = machine.state.failed_tasks.get(array)
        if failed is None and self._ending:
            ending = (task for task in machine.indices.arrays.of(array) if task in self._ending)
            failed = next((task for task in ending if self._ending[task] is not JobState.SUCCEEDED), None)
        return DependencyOutcome(over, failed)

    def _of_jobs(self, machine: Machine, dependency: Dependency) -> DependencyOutcome:
        jobs = self._meant(machine, dependency)
        states = [(each, self._ending.get(each.id, each.state)) for each in jobs]
        failed = (each.id for each, state in states if state in ENDED and state is not JobState.SUCCEEDED)
        return DependencyOutcome(all(state in ENDED for _, state in states), next(failed, None))

    def _meant(self, machine: Machine, dependency: Dependency) -> Sequence[Job]:
        """What is live comes before what is remembered."""
        if dependency.task is None:
            found = machine.state.jobs.get(dependency.job)
        else:
            found = task(machine, dependency.job, dependency.task)
        if found is not None:
            return [found]
        return [each for each in self._remembered.get(dependency.job, ()) if each.is_meant(dependency)]


def consequences(machine: Machine, decided: Sequence[EventBody]) -> list[EventBody]:
    """What follows for queued jobs that wait for those that `decided` ends or renames. To be journalled with it."""
    ending = {body.job: body.state for body in decided if isinstance(body, events.JobEnded)}
    renamed = {
        body.job
        for body in decided
        if isinstance(body, events.JobEdited) and body.spec.name != machine.state.jobs[body.job].spec.name
    }
    if not ending and not renamed:
        return []
    fates = DependencyOutcomes(ending, renamed)
    follow: list[EventBody] = []
    for job, named in _affected(machine, ending, renamed, fates).items():
        if job not in ending and job not in renamed:
            found = machine.state.jobs[job]
            conditions = [each for each in found.waits_for if each.job in named]
            follow += settled(machine, waiter(found), conditions, fates)
    return follow


def _affected(
    machine: Machine, ending: Iterable[JobId], renamed: Iterable[JobId], fates: DependencyOutcomes
) -> dict[JobId, set[JobId]]:
    """Jobs with a condition on what moves, and the jobs and arrays that those conditions name; 0 for a singleton."""
    affected: dict[JobId, set[JobId]] = {}
    owners: dict[tuple[int, str], None] = {}
    for job_id in (*ending, *renamed):
        job = machine.state.jobs[job_id]
        owners[job.submitter.uid, job.spec.name] = None
    for job_id in ending:
        job = machine.state.jobs[job_id]
        for target in dict.fromkeys((job_id, job.array.array if job.array is not None else job_id)):
            for waiting in machine.indices.waiting_for(target):
                affected.setdefault(waiting, set()).add(target)
    for owner in owners:
        if machine.indices.singletons.of(owner):
            first = fates.first_namesake(machine, owner)
            if first is not None and first in machine.indices.singletons.of(owner):
                affected.setdefault(first, set()).add(NAMESAKES)
    return affected
