"""The tasks of a batch, each as the job that it is to its script and to the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

from msgspec.structs import replace

from cockpit.model.spec import Dependency, DependencyKind, JobKind, JobSpec, Task


def task_spec(spec: JobSpec, index: int) -> JobSpec:
    """One task of a batch as a regular job. Its output has a folder of its own, and its script sees no other."""
    task = spec.tasks[index]
    return replace(
        spec,
        kind=JobKind.REGULAR,
        tasks=(),
        command=task.command,
        algorithm=task.algorithm,
        output=f"{spec.output.rstrip('/')}/{spec.name}-{index}",
    )


def batch_spec(tasks: Mapping[int, JobSpec]) -> JobSpec | None:
    """What would ask for these tasks again, by their index as `task_spec` made them; None: there are none."""
    if not tasks:
        return None
    number, first = min(tasks.items(), key=itemgetter(0))
    return replace(
        first,
        kind=JobKind.BATCH,
        tasks=tuple(Task(command=each.command, algorithm=each.algorithm) for _, each in sorted(tasks.items())),
        command="",
        algorithm=None,
        output=first.output.removesuffix(f"/{first.name}-{number}") or "/",
        dependencies=tuple(_of_all_tasks(each, number) for each in first.dependencies),
    )


def _of_all_tasks(condition: Dependency, number: int) -> Dependency:
    """An `aftercorr` of one task, as the whole batch had it."""
    own = condition.kind is DependencyKind.AFTER_CORR and condition.task == number
    return replace(condition, task=None) if own else condition
