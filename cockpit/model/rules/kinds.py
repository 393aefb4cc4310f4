"""Rules for a job spec that depend on its kind. Errors are paths and clauses, as everywhere in `rules`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.rules.mounts import reference_checks
from cockpit.model.rules.text import COMMAND_BYTES, PATH_BYTES, count_error, text_error, utf8_size
from cockpit.model.spec import JobKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.spec import JobSpec

MOST_BATCH_TASKS = 1000
FILE_NAME_BYTES = 255


def kind_checks(spec: JobSpec) -> Iterator[tuple[str, str | None]]:
    """Return what is wrong with the command or the tasks."""
    if spec.command or spec.kind is JobKind.REGULAR:
        yield "command", text_error(spec.command, COMMAND_BYTES)
    yield "tasks", count_error(len(spec.tasks), MOST_BATCH_TASKS)
    for index, task in enumerate(spec.tasks[:MOST_BATCH_TASKS]):
        yield f"tasks[{index}].command", text_error(task.command, COMMAND_BYTES)
        if task.algorithm is not None:
            yield from reference_checks(f"tasks[{index}].algorithm", task.algorithm)


def kind_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Return the fields that a job of this kind cannot have."""
    if spec.kind is JobKind.BATCH:
        yield from _batch_conflicts(spec)
    elif spec.tasks:
        yield "tasks", f"cannot stand in a job of the kind {spec.kind}; write kind: batch, or remove them"
    if spec.kind is not JobKind.REGULAR and spec.resume is not None:
        yield "resume", "is for regular jobs alone; remove it, or write kind: regular"
    if spec.kind is JobKind.INTERACTIVE:
        if spec.array is not None:
            yield "array", "cannot stand in a session, which people enter one by one; remove it"
        if spec.staging:
            yield "staging", "is for jobs that nobody waits for; remove it from a session"


def _batch_conflicts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    if not spec.tasks:
        yield "tasks", "is missing; a batch has one or more: [{command: …, algorithm: …}]"
    for field, given in (("command", spec.command), ("algorithm", spec.algorithm)):
        if given:
            yield field, "cannot stand beside tasks, each of which has its own; remove it"
    if spec.array is not None:
        yield "array", "cannot stand beside tasks, which are one already; remove it"
    longest = f"{spec.name}-{len(spec.tasks) - 1}"
    if utf8_size(longest) > FILE_NAME_BYTES:
        yield "name", f"becomes a folder with each task's number, of more than {FILE_NAME_BYTES} bytes; shorten it"
    if error := text_error(f"{spec.output}/{longest}", PATH_BYTES):
        yield "output", f"with a task's folder in it {error}"
