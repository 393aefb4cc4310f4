"""Places running jobs on nodes and cards, by `scontrol -d show job` where it lists the job, else by a likely guess."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.gres import NO_CARDS, Cards
from cockpit.backends.slurm.mapping.hostlist import hosts, numbers
from cockpit.backends.slurm.mapping.ids import job_id
from cockpit.backends.slurm.mapping.records import blocks
from cockpit.backends.slurm.mapping.unattributed_gpus import Known, UnattributedGpus
from cockpit.backends.slurm.mapping.values import memory_mib
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.node import Allocation, Node, Placement

_LINE = re.compile(r"^ {5}Nodes=(\S*) CPU_IDs=(\S*) Mem=(\S*) GRES=(.*)$", re.MULTILINE)
_HEAD = re.compile(r"^JobId=(\d+)(?: ArrayJobId=(\d+) ArrayTaskId=(\d+))?")
NO_GRES: Mapping[NodeName, Cards] = {}
DETAIL = ("scontrol", "-d", "show", "job")


def details(printed: str, gres: Mapping[NodeName, Cards] = NO_GRES) -> dict[JobId, dict[NodeName, Allocation]]:
    """Return the allocations in the output of `scontrol -d show job`, by job and node; all of them with rank 0."""
    by_job: dict[JobId, dict[NodeName, Allocation]] = {}
    for block in blocks(printed, "JobId"):
        head = _HEAD.match(block)
        if head is None:
            continue
        job = job_id(int(head[2] or head[1]), int(head[3]) if head[3] else None)
        parts = {part.node: part for each in _LINE.finditer(block) for part in _parts(each, gres)}
        if parts:
            by_job.setdefault(job, parts)
    return by_job


def _parts(line: re.Match[str], gres: Mapping[NodeName, Cards]) -> Iterator[Allocation]:
    cpus = len(numbers(line[2]))
    for node in hosts(line[1]):
        yield Allocation(0, node, cpus, memory_mib(line[3]) or 0, tuple(gres.get(node, NO_CARDS).held(line[4])))


def placed(
    jobs: Iterable[Job], nodes: Mapping[NodeName, Node], known: Known, unattributed: UnattributedGpus
) -> list[Job]:
    """Return the jobs; those that occupy resources get their listed allocation, else cards from `unattributed`."""
    jobs = list(jobs)
    # First all listed allocations, so that no guess takes a card that another job is known to have.
    for job in jobs:
        for part in known.get(job.id, {}).values() if job.state in OCCUPYING else ():
            unattributed.hold(part.node, part.slices)
    slots: Counter[tuple[NodeName, int]] = Counter()
    return [
        _numbered(_placed(job, nodes, known.get(job.id, {}), unattributed), nodes, slots)
        if job.state in OCCUPYING
        else job
        for job in jobs
    ]


def _numbered(job: Job, nodes: Mapping[NodeName, Node], slots: Counter[tuple[NodeName, int]]) -> Job:
    """Number the shares that jobs have of one card, from 0; MIG instances have numbers of their own."""
    if job.attempt is None or not job.spec.specs[0].shares_a_card:
        return job
    parts = []
    for part in job.attempt.placement:
        cut = {card.index for card in nodes[part.node].cards if card.slices}
        slices = tuple(
            each if each.card in cut else replace(each, slot=slots[part.node, each.card]) for each in part.slices
        )
        slots.update((part.node, each.card) for each in slices)
        parts.append(replace(part, slices=slices))
    return replace(job, attempt=replace(job.attempt, placement=tuple(parts)))


def _placed(
    job: Job, nodes: Mapping[NodeName, Node], known: Mapping[NodeName, Allocation], unattributed: UnattributedGpus
) -> Job:
    attempt = job.attempt
    if attempt is None:
        return replace(job, state=JobState.QUEUED)
    parts = []
    for part in attempt.placement:
        allocation = known.get(part.node)
        if allocation is None:
            slices = unattributed.take(part.node, nodes.get(part.node), job.spec.specs[0])
            allocation = replace(part, slices=slices)
        parts.append(replace(allocation, rank=part.rank))
    return replace(job, attempt=replace(attempt, placement=_within(tuple(parts), nodes)))


def _within(placement: Placement, nodes: Mapping[NodeName, Node]) -> Placement:
    """Keep the allocations on known nodes; others cannot be shown."""
    return tuple(part for part in placement if part.node in nodes)
