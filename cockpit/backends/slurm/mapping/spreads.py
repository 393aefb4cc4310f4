"""Reads pending jobs whose tasks Slurm spreads over nodes: `-n 24` without -N, `-n 24 -N 2-3`, and `-n 24 -N 3`.

For such a job squeue prints the number of nodes of Slurm's last plan. The range that it allows is in
`scontrol -d show job`, which is read anyway when the embedded scheduler plans.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import values
from cockpit.backends.slurm.mapping.jobparts import Fields, node_count, node_spec
from cockpit.backends.slurm.mapping.records import job_blocks
from cockpit.model.cardmodels import instances_per_card
from cockpit.model.spec import WHOLE_CARD, JobSpec, NodeSpec, TaskSpread

_WAITS = re.compile(r"^ {3}JobState=PENDING ", re.MULTILINE)
_SIZE = re.compile(
    r"^ {3}NumNodes=\d+(?:-(?P<most>\d+))? NumCPUs=(?P<cpus>\d+) NumTasks=(?P<tasks>\d+) CPUs/Task=(?P<each>\S+)",
    re.MULTILINE,
)
_PER_NODE = re.compile(r"^ {3}Socks/Node=\S+ NtasksPerN:B:S:C=(\d+)", re.MULTILINE)
_LEAST = re.compile(r"^ {3}MinCPUsNode=(?P<cpus>\d+) MinMemory(?P<per>Node|CPU)=(?P<memory>\S+)", re.MULTILINE)

_PER_CARD = re.compile(r"^ {3}NtasksPerTRES=(\d+)", re.MULTILINE)
_CARD_CPUS = re.compile(r"^ {3}CpusPerTres=gres.gpu(?::[^:\s]+)?:(\d+)$", re.MULTILINE)
_CARD_MEMORY = re.compile(r"^ {3}MemPerTres=gres.gpu(?::[^:\s]+)?:(\d+)$", re.MULTILINE)


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
    per_card: int | None = None
    """Tasks of each card (`--ntasks-per-gpu`)."""
    card_cpus: int = 0
    """CPUs of each card (`--cpus-per-gpu`)."""
    card_memory_mib: int = 0
    """Memory of each card in MiB (`--mem-per-gpu`)."""


Spreads = Mapping[str, Tasks]
"""Tasks by Slurm's own number of the job (squeue's JobID)."""
NO_SPREADS: Spreads = {}


def spreads(printed: str, names: Iterable[str] = ()) -> dict[str, Tasks]:
    """Return the tasks of the pending jobs in the output of `scontrol -d show job`. `names`: like `job_blocks`."""
    by_number: dict[str, Tasks] = {}
    for block in job_blocks(printed, names):
        if _WAITS.search(block) is not None and (tasks := _tasks(block)) is not None:
            by_number[block.split(maxsplit=1)[0].partition("=")[2]] = tasks
    return by_number


def _tasks(block: str) -> Tasks | None:
    """Return the size of a job in tasks; None if it does not request tasks."""
    size, least, per_node = _SIZE.search(block), _LEAST.search(block), _PER_NODE.search(block)
    if size is None or least is None or int(size["tasks"]) < 1:
        return None
    tasks = int(size["tasks"])
    # CPUs/Task is N/A where the job asks for CPUs in another way; then they are divided over its tasks.
    each = int(size["each"]) if size["each"].isdigit() else int(size["cpus"]) // tasks
    return Tasks(
        tasks=tasks,
        cpus=max(1, each),
        most_nodes=int(size["most"]) if size["most"] else None,
        # 0 in NtasksPerN means that nothing was asked.
        most_per_node=int(per_node[1]) or None if per_node is not None else None,
        node_cpus=int(least["cpus"]),
        memory_mib=values.memory_mib(least["memory"]) or 0,
        is_memory_per_cpu=least["per"] == "CPU",
        per_card=_of_card(_PER_CARD, block) or None,
        card_cpus=_of_card(_CARD_CPUS, block),
        card_memory_mib=_of_card(_CARD_MEMORY, block),
    )


def _of_card(pattern: re.Pattern[str], block: str) -> int:
    match = pattern.search(block)
    return int(match[1]) if match is not None else 0


def spread_spec(spec: JobSpec, fields: Fields, tasks: Tasks, shards: int) -> JobSpec | None:
    """Return the job's spec with its tasks, and the cards that it asks for as a whole, spread over its nodes.

    None when the ordinary spec of equal nodes says the same, and for cards that cannot be planned so: those of several
    models, each with a number of its own, and instances of MIG.

    1. Look at what asks for the cards: each node, each task, or the job as a whole.
    2. Divide what is asked between each task and each node. A job that names no memory takes all that a node has.
    """
    least = _least_nodes(fields)
    if not least:
        return None
    # squeue's NumNodes is of the last plan; the request's totals belong to the smallest number of nodes.
    whole = node_spec({**fields, "NumNodes": str(least)}, shards)
    # 1.
    cards_each = _cards_of_task(fields, tasks.tasks)
    cards = int(values.tres(fields.get("tres-alloc", "")).get("gres/gpu", 0)) if cards_each is None else 0
    # One task or none on each of a fixed number of nodes: equal nodes say exactly that.
    if tasks.tasks <= least == node_count(fields) and (least == 1 or cards % least == 0):
        return None
    if cards_each is None and whole.card_milli and (not cards or not _are_alike(whole)):
        return None
    # 2.
    memory = tasks.memory_mib * (tasks.cpus if tasks.is_memory_per_cpu else 1)
    each = NodeSpec(
        cpus=tasks.cpus, memory_mib=memory if tasks.is_memory_per_cpu else 0, card_milli=WHOLE_CARD * (cards_each or 0)
    )
    asks_for_memory = tasks.memory_mib or tasks.card_memory_mib
    # The least of each node that takes part: one task, or one card.
    base = replace(
        whole,
        cpus=max(tasks.cpus, tasks.node_cpus),
        memory_mib=memory if asks_for_memory else whole.memory_mib,
        card_milli=WHOLE_CARD if cards else each.card_milli or whole.card_milli,
    )
    spread = TaskSpread(
        tasks=max(tasks.tasks, least),
        each=each,
        most_nodes=tasks.most_nodes,
        most_per_node=tasks.most_per_node,
        cards=cards,
        each_card=NodeSpec(cpus=tasks.card_cpus, memory_mib=tasks.card_memory_mib),
        tasks_per_card=tasks.per_card if cards else None,
    )
    return replace(spec, nodes=least, specs=(base,), spread=spread)


def _are_alike(whole: NodeSpec) -> bool:
    """Return whether any of the cards will do for each: they are whole ones, of one model at most."""
    return len(whole.card_models) <= 1 and not any(map(instances_per_card, whole.card_models))


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
