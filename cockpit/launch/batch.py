"""The tasks of a batch, each as the job that it is to its script and to the scheduler."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model.spec import JobKind, JobSpec


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
