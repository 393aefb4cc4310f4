"""Converts the tasks of a batch job into jobs of their own, and back."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

from msgspec.structs import replace

from cockpit.model.spec import Dependency, DependencyKind, JobKind, JobSpec, Task


def task_spec(spec: JobSpec, index: int) -> JobSpec:
    """Return one task of a batch as a regular job, whose output folder is its own."""
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
    """Return the batch that would submit these tasks again; None if there are none.

    `tasks`: specs that `task_spec` made, by index.
    """
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
    """Return an `aftercorr` condition of one task in the form that the whole batch had."""
    own = condition.kind is DependencyKind.AFTER_CORR and condition.task == number
    return replace(condition, task=None) if own else condition
