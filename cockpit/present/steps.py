"""The steps within a job of another scheduler's cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cockpit.present import units
from cockpit.present.moments import clock, iso
from cockpit.present.safe import safe
from cockpit.present.spans import small_table

if TYPE_CHECKING:
    from cockpit.model.jobdetail import JobDetail, StepRow
    from cockpit.present.columns import Context
    from cockpit.present.spans import Line

TITLES: Final = ("STEP", "COMMAND", "STATE", "NODES", "TASKS", "STARTED", "TIME", "CPU", "MEMORY")
NOTHING: Final = "–"


def step_lines(detail: JobDetail, context: Context) -> Iterator[Line]:
    """Yield the table of the job's steps; no lines for a job without steps."""
    if not detail.steps:
        return
    # Only clusters whose steps write files of their own have this column.
    written = any(each.output for each in detail.steps)
    titles = (*TITLES, "OUTPUT") if written else TITLES
    outputs = ((safe(each.output) or NOTHING,) if written else () for each in detail.steps)
    cells = (step_cells(each, context) for each in detail.steps)
    yield from small_table(titles, [(*own, *output) for own, output in zip(cells, outputs, strict=True)])


def step_cells(step: StepRow, context: Context) -> tuple[str, ...]:
    """Return the cells of a step in the order of `TITLES`; a dash where a value was not measured."""
    state = step.state if not step.exit_code else f"{step.state} ({step.exit_code})"
    # A step without an end is running.
    until = step.ended_at or context.now
    took = units.duration(max(0, until - step.started_at) // 1000) if step.started_at is not None else NOTHING
    return (
        safe(step.name),
        safe(step.command),
        safe(state),
        str(step.nodes),
        NOTHING if step.tasks is None else str(step.tasks),
        clock(step.started_at, context.now, context.zone) if step.started_at is not None else NOTHING,
        took,
        units.duration(step.cpu_ms // 1000) if step.cpu_ms is not None else NOTHING,
        units.memory(step.peak_memory_mib) if step.peak_memory_mib is not None else NOTHING,
    )


def steps_json(detail: JobDetail, _: Context) -> list[dict[str, Any]]:
    """Return one object for each step of the job, with moments in ISO 8601 and null for what was not measured."""
    return [
        {
            "name": each.name,
            "command": each.command,
            "state": each.state,
            "nodes": each.nodes,
            "tasks": each.tasks,
            "started_at": iso(each.started_at) if each.started_at is not None else None,
            "ended_at": iso(each.ended_at) if each.ended_at is not None else None,
            "exit_code": each.exit_code,
            "cpu_ms": each.cpu_ms,
            "peak_memory_mib": each.peak_memory_mib,
            "output": each.output,
        }
        for each in detail.steps
    ]
