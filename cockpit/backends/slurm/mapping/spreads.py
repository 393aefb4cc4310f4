"""Reads pending jobs whose tasks Slurm spreads over nodes: `-n 24` without -N, `-n 24 -N 2-3`, and `-n 24 -N 3`.

For such a job squeue prints the number of nodes of Slurm's last plan. The range that it allows is in
`scontrol -d show job`, which is read anyway when the embedded scheduler plans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.jobparts import Fields, node_count, node_spec
from cockpit.backends.slurm.mapping.records import blocks
from cockpit.model.spec import WHOLE_CARD, JobSpec, NodeSpec, TaskSpread

_WAITS = re.compile(r"^ {3}JobState=PENDING ", re.MULTILINE)
_SIZE = re.compile(
    r"^ {3}NumNodes=\d+(?:-(?P<most>\d+))? NumCPUs=(?P<cpus>\d+) NumTasks=(?P<tasks>\d+) CPUs/Task=(?P<each>\S+)",
    re.MULTILINE,
)
_PER_NODE = re.compile(r"^ {3}Socks/Node=\S+ NtasksPerN:B:S:C=(\d+)", re.MULTILINE)
_LEAST = re.compile(r"^ {3}MinCPUsNode=(?P<cpus>\d+) MinMemory(?P<per>Node|CPU)=(?P<memory>\S+)", re.MULTILINE)


class Tasks(NamedTuple):
    """The tasks of a pending job, as `scontrol show job` lists them."""

    tasks: int
    cpus: int
    """CPUs of each task."""
    most_nodes: int | None
    most_per_node: int | None
    node_cpus: int
    """Least CPUs of each node."""
    memory_mib: int
    """Memory of each node, or of each CPU, in MiB."""
    is_memory_per_cpu: bool


Spreads = Mapping[str, Tasks]
"""Tasks by Slurm's own number of the job (squeue's JobID)."""
NO_SPREADS: Spreads = {}


def spreads(printed: str) -> dict[str, Tasks]:
    """Return the tasks of the pending jobs in the output of `scontrol -d show job`."""
    by_number: dict[str, Tasks] = {}
    for block in blocks(printed, "JobId"):
        if _WAITS.search(block) is not None and (tasks := _tasks(block)) is not None:
            by_number[block.split(maxsplit=1)[0].partition("=")[2]] = tasks
    return by_number


def _tasks(block: str) -> Tasks | None:
    size, least, per_node = _SIZE.search(block), _LEAST.search(block), _PER_NODE.search(block)
    if size is None or least is None or int(size["tasks"]) < 1:
        return None
    tasks = int(size["tasks"])
    each = int(size["each"]) if size["each"].isdigit() else int(size["cpus"]) // tasks
    return Tasks(
        tasks=tasks,
        cpus=max(1, each),
        most_nodes=int(size["most"]) if size["most"] else None,
        most_per_node=int(per_node[1]) or None if per_node is not None else None,
        node_cpus=int(least["cpus"]),
        memory_mib=values.memory_mib(least["memory"]) or 0,
        is_memory_per_cpu=least["per"] == "CPU",
    )


def spread_spec(spec: JobSpec, fields: Fields, tasks: Tasks, shards: int) -> JobSpec | None:
    """Return the job's spec with its tasks spread over its nodes.

    None when the ordinary spec of equal nodes says the same, or when the job asks for cards as a whole (`--gpus`).
    """
    least = _least_nodes(fields)
    if not least or (tasks.tasks <= least == node_count(fields)):
        return None
    whole = node_spec({**fields, "NumNodes": str(least)}, shards)
    cards_each = _cards_of_task(fields, tasks.tasks)
    if whole.card_milli and cards_each is None:
        return None
    memory = tasks.memory_mib * (tasks.cpus if tasks.is_memory_per_cpu else 1)
    each = NodeSpec(
        cpus=tasks.cpus, memory_mib=memory if tasks.is_memory_per_cpu else 0, card_milli=WHOLE_CARD * (cards_each or 0)
    )
    base = replace(
        whole,
        cpus=max(tasks.cpus, tasks.node_cpus),
        memory_mib=memory,
        card_milli=each.card_milli or whole.card_milli,
    )
    spread = TaskSpread(
        tasks=max(tasks.tasks, least), each=each, most_nodes=tasks.most_nodes, most_per_node=tasks.most_per_node
    )
    return replace(spec, nodes=least, specs=(base,), spread=spread)


def _least_nodes(fields: Fields) -> int:
    """Return the least number of nodes of a pending job: its requested TRES are those of the fewest nodes."""
    return int(values.tres(fields.get("tres-alloc", "")).get("node", 0))


def _cards_of_task(fields: Fields, tasks: int) -> int | None:
    """Return the whole cards of each task; 0 if the job asks for cards per node, None if it asks for neither."""
    if "gpu" in fields.get("tres-per-node", "") or "shard" in fields.get("tres-per-node", ""):
        return 0
    if "gpu" not in fields.get("tres-per-task", ""):  # it may name CPUs alone
        return None
    cards = values.tres(fields.get("tres-alloc", "")).get("gres/gpu", 0)
    return int(cards // tasks) or None
