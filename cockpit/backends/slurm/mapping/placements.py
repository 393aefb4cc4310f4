"""Which CPUs, memory and cards of which node a running job has: exactly, where `scontrol -d show job` was asked."""

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
    """By job and node, of what `scontrol -d show job` prints; ranks are not told there."""
    found: dict[JobId, dict[NodeName, Allocation]] = {}
    for block in blocks(printed, "JobId"):
        head = _HEAD.match(block)
        if head is None:
            continue
        job = job_id(int(head[2] or head[1]), int(head[3]) if head[3] else None)
        parts = {part.node: part for each in _LINE.finditer(block) for part in _parts(each, gres)}
        if parts:
            found.setdefault(job, parts)
    return found


def _parts(line: re.Match[str], gres: Mapping[NodeName, Cards]) -> Iterator[Allocation]:
    cpus = len(numbers(line[2]))
    for node in hosts(line[1]):
        yield Allocation(0, node, cpus, memory_mib(line[3]) or 0, tuple(gres.get(node, NO_CARDS).held(line[4])))


def placed(jobs: Iterable[Job], nodes: Mapping[NodeName, Node], known: Known, untold: UnattributedGpus) -> list[Job]:
    """The same jobs, those that occupy something with their cards: what is known, else what they take of `untold`."""
    jobs = list(jobs)
    for job in jobs:
        for part in known.get(job.id, {}).values() if job.state in OCCUPYING else ():
            untold.hold(part.node, part.slices)
    slots: Counter[tuple[NodeName, int]] = Counter()
    return [
        _numbered(_placed(job, nodes, known.get(job.id, {}), untold), nodes, slots) if job.state in OCCUPYING else job
        for job in jobs
    ]


def _numbered(job: Job, nodes: Mapping[NodeName, Node], slots: Counter[tuple[NodeName, int]]) -> Job:
    """Shares of one card by different jobs, told apart; instances of MIG have numbers of their own."""
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
    job: Job, nodes: Mapping[NodeName, Node], known: Mapping[NodeName, Allocation], untold: UnattributedGpus
) -> Job:
    attempt = job.attempt
    if attempt is None:
        return replace(job, state=JobState.QUEUED)
    parts = []
    for part in attempt.placement:
        told = known.get(part.node)
        if told is None:
            told = replace(part, slices=untold.take(part.node, nodes.get(part.node), job.spec.specs[0]))
        parts.append(replace(told, rank=part.rank))
    return replace(job, attempt=replace(attempt, placement=_within(tuple(parts), nodes)))


def _within(placement: Placement, nodes: Mapping[NodeName, Node]) -> Placement:
    """Only nodes that are known: others cannot be shown."""
    return tuple(part for part in placement if part.node in nodes)
