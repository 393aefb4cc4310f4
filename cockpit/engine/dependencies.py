"""Decides which dependencies of queued jobs are met or can never be met: at submission, and whenever a job ends.

A dependency on an array is one on all its tasks, unless it names one task (`123_4`), as `aftercorr` does for each task.
A job that is no longer in the live state has ended. Whether a task of an array failed stays in
`ClusterState.failed_tasks` for as long as any task of the array is live.
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
"""The job id in a singleton dependency, which names no job but all of the same user and name."""


class DependencyOutcome(NamedTuple):
    """The state of a job, or of an array as a whole, as dependencies see it: whether it has ended, and whether it
    failed."""

    over: bool
    """Whether the job, or every task of the array, has ended."""
    failed: JobId | None
    """The job or task that ended in another state than succeeded; None: none has."""


def verdict(dependency: Dependency, outcome: DependencyOutcome) -> bool | None:
    """Return True if the dependency is met, False if it can never be met, None if that is open."""
    match dependency.kind:
        case DependencyKind.AFTER_ANY:
            return True if outcome.over else None
        case DependencyKind.AFTER_NOT_OK:
            # Only once all is over: until then another task may still fail or succeed.
            return outcome.failed is not None if outcome.over else None
        case _:  # afterok: one failed task decides before the array is over
            return False if outcome.failed is not None else True if outcome.over else None


class Waiter(NamedTuple):
    """A queued job, or one that is being submitted, whose dependencies are checked."""

    job: JobId
    owner: tuple[int, str]
    """User id and job name, which singletons share with the jobs that they wait for."""
    never: bool = False
    """Whether another of its dependencies can never be met, so that no further event says so."""


def waiter(job: Job) -> Waiter:
    """Return what `settled` needs to know of a job of the state."""
    return Waiter(job.id, (job.submitter.uid, job.spec.name), job.never is not None)


def settled(
    machine: Machine, waiting: Waiter, conditions: Iterable[Dependency], outcomes: DependencyOutcomes
) -> list[EventBody]:
    """Return an event for each of a job's dependencies that is met or can never be met now.

    At most one event says that a dependency can never be met: the first makes the job wait for ever.
    """
    decided: list[EventBody] = []
    never = waiting.never
    # Each once, although a spec may name it twice: one event settles both.
    for dependency in dict.fromkeys(conditions):
        if dependency.kind is DependencyKind.SINGLETON:
            # As in Slurm (sbatch(1), --dependency=singleton) only jobs that were submitted earlier count. So the first
            # live one of a name does not wait for the later ones, and they run in order of their ids.
            first = outcomes.first_namesake(machine, waiting.owner)
            met, because = (True if first is None or first >= waiting.job else None), None
        else:
            outcome = outcomes.of(machine, dependency)
            met, because = verdict(dependency, outcome), outcome.failed
        if met:
            decided.append(events.DependencyMet(waiting.job, dependency))
        elif met is False and not never:
            decided.append(events.DependencyFailed(waiting.job, dependency, because or dependency.job))
            never = True
    return decided


class DependencyOutcomes:
    """Looks up the outcomes of jobs that others depend on, in three sources.

    1. `ending`: end states that are being decided but not applied to the state yet. `renamed`: jobs whose names are
       being changed, which are no namesakes of a singleton any more.
    2. The machine's state.
    3. `remembered`: jobs from the accounting, which have left the state.
    """

    def __init__(
        self,
        ending: Mapping[JobId, JobState] | None = None,
        renamed: Collection[JobId] = (),
        remembered: Iterable[Job] = (),
    ) -> None:
        self._ending = ending or {}
        self._renamed = renamed
        self._remembered: dict[JobId, list[Job]] = {}
        # Also under the array's id: a dependency on an array that has left the state is one on all its tasks.
        for job in remembered:
            self._remembered.setdefault(job.id, []).append(job)
            if job.array is not None and job.array.array != job.id:
                self._remembered.setdefault(job.array.array, []).append(job)

    def of(self, machine: Machine, dependency: Dependency) -> DependencyOutcome:
        """Return the outcome of the job, array or task that the dependency names."""
        if dependency.task is None and machine.indices.arrays.of(dependency.job):
            return self._of_array(machine, dependency.job)
        return self._of_jobs(machine, dependency)

    def first_namesake(self, machine: Machine, owner: tuple[int, str]) -> JobId | None:
        """Return the earliest live job of that user and name; None: there is none."""
        namesakes = machine.indices.owned.of(owner)
        return min((each for each in namesakes if each not in self._ending and each not in self._renamed), default=None)

    def _of_array(self, machine: Machine, array: JobId) -> DependencyOutcome:
        # `tasks` has only live ones, so that without any the array is over.
        over = all(task in self._ending for task in machine.indices.tasks.of(array))
        failed = machine.state.failed_tasks.get(array)
        # The state does not know yet what is being decided just now.
        if failed is None and self._ending:
            ending = (task for task in machine.indices.arrays.of(array) if task in self._ending)
            failed = next((task for task in ending if self._ending[task] is not JobState.SUCCEEDED), None)
        return DependencyOutcome(over, failed)

    def _of_jobs(self, machine: Machine, dependency: Dependency) -> DependencyOutcome:
        jobs = self._jobs_named(machine, dependency)
        states = [(each, self._ending.get(each.id, each.state)) for each in jobs]
        failed = (each.id for each, state in states if state in ENDED and state is not JobState.SUCCEEDED)
        return DependencyOutcome(all(state in ENDED for _, state in states), next(failed, None))

    def _jobs_named(self, machine: Machine, dependency: Dependency) -> Sequence[Job]:
        """Return the jobs that the dependency names: live ones, else those in accounting."""
        if dependency.task is None:
            live = machine.state.jobs.get(dependency.job)
        else:
            live = task(machine, dependency.job, dependency.task)
        if live is not None:
            return [live]
        return [each for each in self._remembered.get(dependency.job, ()) if each.is_meant(dependency)]


def consequences(machine: Machine, decided: Sequence[EventBody]) -> list[EventBody]:
    """Return the events for queued jobs that depend on jobs which `decided` ends or renames.

    The caller appends them to the journal together with `decided`: after a crash in between, they would be missing.

    1. Collect the jobs that end, and those that get another name (a singleton may have waited for the old name).
    2. Find the queued jobs that depend on them.
    3. Check those of their dependencies that name one of these jobs or arrays.
    """
    ending = {body.job: body.state for body in decided if isinstance(body, events.JobEnded)}
    renamed = {
        body.job
        for body in decided
        if isinstance(body, events.JobEdited) and body.spec.name != machine.state.jobs[body.job].spec.name
    }
    if not ending and not renamed:
        return []
    outcomes = DependencyOutcomes(ending, renamed)
    follow: list[EventBody] = []
    for job_id, targets in _affected(machine, ending, renamed, outcomes).items():
        # A job that ends itself waits for nothing; `edit` settles the dependencies of a renamed one.
        if job_id not in ending and job_id not in renamed:
            job = machine.state.jobs[job_id]
            conditions = [each for each in job.waits_for if each.job in targets]
            follow += settled(machine, waiter(job), conditions, outcomes)
    return follow


def _affected(
    machine: Machine, ending: Iterable[JobId], renamed: Iterable[JobId], outcomes: DependencyOutcomes
) -> dict[JobId, set[JobId]]:
    """Return the queued jobs that depend on ending or renamed ones, each with the job and array ids to check.

    `NAMESAKES` is the target of a singleton. Only the first singleton of a name can start, so the later ones are left
    out.
    """
    affected: dict[JobId, set[JobId]] = {}
    owners: dict[tuple[int, str], None] = {}
    for job_id in (*ending, *renamed):
        job = machine.state.jobs[job_id]
        # A dictionary instead of a set: the events must come in the same order in every run.
        owners[job.submitter.uid, job.spec.name] = None
    for job_id in ending:
        job = machine.state.jobs[job_id]
        for target in dict.fromkeys((job_id, job.array.array if job.array is not None else job_id)):
            for waiting in machine.indices.waiting_for(target):
                affected.setdefault(waiting, set()).add(target)
    for owner in owners:
        # The earliest job that is left may be no singleton: then the singletons go on waiting for it.
        if machine.indices.singletons.of(owner):
            first = outcomes.first_namesake(machine, owner)
            if first is not None and first in machine.indices.singletons.of(owner):
                affected.setdefault(first, set()).add(NAMESAKES)
    return affected
