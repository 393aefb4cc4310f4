"""The figures of the header for clusters of which rows and nodes are known, and no engine's indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from operator import attrgetter
from typing import Final

from cockpit.model.job import OCCUPYING, JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.node import Node
from cockpit.model.spec import WHOLE_CARD
from cockpit.model.view import Overview

# Attribute getters, as they are called for each of ten thousand jobs whenever one of them changes.
_state: Final = attrgetter("state")
_tasks: Final = attrgetter("tasks")
_held_until: Final = attrgetter("held_until")


def overview_of(cluster: str, rows: Collection[JobRow], nodes: Collection[Node]) -> Overview:
    """Return the figures of the header, computed from the rows and nodes that are listed anyway."""
    held = [row for row in rows if row.state in OCCUPYING]
    counts = Counter(map(_state, rows))
    for row in filter(_tasks, rows):
        counts[row.state] += len(row.tasks) - 1
    return Overview(
        cluster=cluster,
        jobs_by_state={str(state): count for state, count in counts.items()},
        held=sum(1 for _ in filter(_held_until, rows)),
        nodes=len(nodes),
        cpus=sum(node.cpus for node in nodes),
        # A suspended job has given back its CPUs (squeue(1), JOB STATE CODES), but not its memory.
        used_cpus=sum(row.cpus for row in held if row.state is not JobState.SUSPENDED),
        memory_mib=sum(node.memory_mib for node in nodes),
        used_memory_mib=sum(row.memory_mib for row in held),
        card_milli=WHOLE_CARD * sum(len(node.cards) for node in nodes),
        used_card_milli=sum(row.card_milli for row in held),
    )
