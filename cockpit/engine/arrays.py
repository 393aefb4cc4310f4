"""Expands arrays, batches and sweeps into one job per task with consecutive ids, and finds the tasks of an array.

`123_4` names a task, `123` the array. To the scheduler a batch is an array whose tasks have commands, algorithms and
output folders of their own, and a sweep one whose tasks have different parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.launch.sweeps import task_spec, trial_count, trial_spec
from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask, Job
from cockpit.model.refusal import Refusal
from cockpit.model.spec import Dependency, DependencyKind, JobKind, JobSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody


def size(spec: JobSpec) -> int:
    """Return the number of jobs that a spec leads to."""
    indices = indices_of(spec)
    return 1 if indices is None else len(indices)


def indices_of(spec: JobSpec) -> Sequence[int] | None:
    """Return the indices of the spec's tasks; None: it is a single job."""
    if spec.kind is JobKind.BATCH:
        return range(len(spec.tasks))
    if spec.sweep is not None:
        return range(trial_count(spec.sweep))
    return None if spec.array is None else spec.array.indices


def expanded(machine: Machine, spec: JobSpec, first: JobId) -> Iterator[tuple[JobSpec, ArrayTask | None]]:
    """Yield the spec of each job that `spec` leads to, and its position in the array; ids begin with `first`.

    A task's spec has no array, and its `aftercorr` dependencies name the one task that it waits for.
    """
    indices = indices_of(spec)
    if indices is None:
        yield spec, None
        return
    batch = spec.kind is JobKind.BATCH
    alone = replace(spec, array=None)
    at_once = spec.array.at_once if spec.array is not None else spec.sweep.parallel if spec.sweep is not None else 0
    # Looked up once: an array may have thousands of tasks, and so may the array that it depends on.
    others = set(_corresponding(machine, spec))
    for index in indices:
        own = task_spec(spec, index) if batch else alone if spec.sweep is None else trial_spec(alone, index)
        own = _taskwise(own, others, index) if others else own
        yield own, ArrayTask(first, index, at_once, len(indices), indices[0], indices[-1], batch)


def taskwise(machine: Machine, spec: JobSpec, own: ArrayTask) -> JobSpec:
    """Return the spec of one task, whose `aftercorr` dependencies name the one task that it waits for."""
    return _taskwise(spec, set(_corresponding(machine, spec)), own.index)


def missing_tasks(machine: Machine, spec: JobSpec) -> Iterator[tuple[JobId, int]]:
    """Yield the first missing task (array, index) of each array that an `aftercorr` dependency of the spec names."""
    for array, tasks in _corresponding(machine, spec).items():
        absent = next((index for index in indices_of(spec) or () if index not in tasks), None)
        if absent is not None:
            yield array, absent


def _corresponding(machine: Machine, spec: JobSpec) -> dict[JobId, dict[int, JobId]]:
    """Return the tasks, by index, of each array that an `aftercorr` dependency names as a whole."""
    arrays = {each.job for each in spec.dependencies if each.kind is DependencyKind.AFTER_CORR and each.task is None}
    jobs, tasks = machine.state.jobs, machine.indices.arrays.of
    return {array: {_index(jobs[each]): each for each in tasks(array)} for array in sorted(arrays) if tasks(array)}


def _taskwise(spec: JobSpec, arrays: set[JobId], index: int) -> JobSpec:
    """Return the spec with the task `index` in place of each of these arrays in its `aftercorr` dependencies."""

    def one(each: Dependency) -> Dependency:
        own = each.kind is DependencyKind.AFTER_CORR and each.task is None and each.job in arrays
        return replace(each, task=index) if own else each

    return replace(spec, dependencies=tuple(map(one, spec.dependencies)))


def task(machine: Machine, array: JobId, index: int) -> Job | None:
    """Return the task of an array with this index, or None. `array`: the id of the array or of any of its tasks."""
    # The first task has the array's own id, and may have left the state while others are live: then `array` is used.
    named = machine.state.jobs.get(array)
    if named is not None and named.array is not None:
        array = named.array.array
    jobs = machine.state.jobs
    return next(
        (jobs[each] for each in machine.indices.arrays.of(array) if _index(jobs[each]) == index),
        None,
    )


def addressed(machine: Machine, job: JobId, index: int | None) -> list[Job]:
    """Return the jobs of the state that `123_4` (with an index) or `123` names: a task, an array's tasks, or a job."""
    if index is not None:
        named = task(machine, job, index)
        return [named] if named is not None else []
    # Before the job itself: the id of an array is also that of its first task.
    tasks = machine.indices.arrays.of(job)
    if tasks:
        return [machine.state.jobs[each] for each in tasks]
    alone = machine.state.jobs.get(job)
    return [alone] if alone is not None else []


def on_each(jobs: Sequence[Job], decision: Callable[[Job], list[EventBody] | Refusal]) -> list[EventBody] | Refusal:
    """Apply a decision to every job, and return all events.

    Jobs that refuse it are skipped, as ended tasks of an array; if all refuse it, the first refusal is returned.
    """
    decided: list[EventBody] = []
    refusals: list[Refusal] = []
    for job in jobs:
        outcome = decision(job)
        if isinstance(outcome, Refusal):
            refusals.append(outcome)
        else:
            decided += outcome
    return refusals[0] if refusals and len(refusals) == len(jobs) else decided


def _index(job: Job) -> int:
    assert job.array is not None
    return job.array.index
