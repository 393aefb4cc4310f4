"""`scontrol show step` as the steps of a running job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo

from cockpit.backends.slurm.mapping import states, values
from cockpit.backends.slurm.mapping.hostlist import hosts
from cockpit.backends.slurm.mapping.records import blocks, words
from cockpit.model.jobdetail import StepRow


def beside(accounted: Sequence[StepRow], running: Sequence[StepRow]) -> tuple[StepRow, ...]:
    """Return the records of accounting, with running jobs that its database does not have."""
    known = {step.name for step in accounted}
    return (*accounted, *(step for step in running if step.name not in known))


def steps(printed: str, zone: tzinfo | None) -> Iterator[StepRow]:
    """Return the running steps; nothing where none runs and scontrol prints a sentence."""
    for block in blocks(printed, "StepId"):
        record = words(block)
        yield StepRow(
            name=record["StepId"].rpartition(".")[2].lower(),
            command=record.get("Name", ""),
            state=states.word(record.get("State", "")).lower(),
            nodes=max(1, len(hosts(values.text(record.get("NodeList", ""))))),
            tasks=values.number(record.get("Tasks", "")),
            started_at=values.moment(record.get("StartTime", ""), zone),
            ended_at=None,
        )
