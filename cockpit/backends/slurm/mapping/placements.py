"""Which CPUs, memory and cards of which node a running job has: exactly, where `scontrol -d show job` was asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.gres import NO_CARDS, Cards
from cockpit.backends.slurm.mapping.hostlist import hosts, numbers
from cockpit.backends.slurm.mapping.ids import job_id
from cockpit.backends.slurm.mapping.nodes import Seen
from cockpit.backends.slurm.mapping.records import blocks
from cockpit.backends.slurm.mapping.values import memory_mib
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.node import Allocation, Card, CardSlice, Node, Placement
from cockpit.model.spec import WHOLE_CARD
from cockpit.sched.nodes.cards import slot_milli

_LINE = re.compile(r"^ {5}Nodes=(\S*) CPU_IDs=(\S*) Mem=(\S*) GRES=(.*)$", re.MULTILINE)
_HEAD = re.compile(r"^JobId=(\d+)(?: ArrayJobId=(\d+) ArrayTaskId=(\d+))?")
OTHERS = ""
"""Whose cards they are that nobody is told of."""
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


def held_by_others(
    nodes: Iterable[Seen], known: Mapping[JobId, Mapping[NodeName, Allocation]]
) -> dict[str, tuple[Placement, ...]]:
    """Cards that nodes say are in use, and no job that is told of has: whose they are is not for the asker to know."""
    told = {
        (part.node, each.card, each.slot) for parts in known.values() for part in parts.values() for each in part.slices
    }
    shared = {(part.node, each.card) for parts in known.values() for part in parts.values() for each in part.slices}
    found = []
    for seen in nodes:
        name = seen.node.name
        rest = tuple(
            each
            for each in seen.in_use
            if (name, each.card, each.slot) not in told
            and not (seen.gres.shards_per_card and (name, each.card) in shared)
        )
        if rest:
            found.append((Allocation(0, name, 0, 0, rest),))
    return {OTHERS: tuple(found)} if found else {}


def placed(
    jobs: Iterable[Job],
    nodes: Mapping[NodeName, Node],
    known: Mapping[JobId, Mapping[NodeName, Allocation]],
) -> Iterator[Job]:
    """The same jobs, those that occupy something with their cards. Where nobody told which, the first free ones of the
    right model: as many as they have, on the nodes that they are on."""
    jobs = list(jobs)
    taken: dict[tuple[NodeName, int], int] = {}
    for job in jobs:
        for part in known.get(job.id, {}).values() if job.state in OCCUPYING else ():
            _take(taken, part)
    slots: Counter[tuple[NodeName, int]] = Counter()
    for job in jobs:
        yield _numbered(_placed(job, nodes, known.get(job.id), taken), nodes, slots) if job.state in OCCUPYING else job


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


def _take(taken: dict[tuple[NodeName, int], int], part: Allocation) -> None:
    for each in part.slices:
        taken[part.node, each.card] = taken.get((part.node, each.card), 0) + each.milli


def _placed(
    job: Job,
    nodes: Mapping[NodeName, Node],
    known: Mapping[NodeName, Allocation] | None,
    taken: dict[tuple[NodeName, int], int],
) -> Job:
    attempt = job.attempt
    if attempt is None:
        return replace(job, state=JobState.QUEUED)
    parts = []
    for part in attempt.placement:
        told = known.get(part.node) if known is not None else None
        if told is None:
            told = replace(part, slices=tuple(_guessed(job, part, nodes.get(part.node), taken)))
            _take(taken, told)
        parts.append(replace(told, rank=part.rank))
    return replace(job, attempt=replace(attempt, placement=_within(tuple(parts), nodes)))


def _within(placement: Placement, nodes: Mapping[NodeName, Node]) -> Placement:
    """Only nodes that are known: others cannot be shown."""
    return tuple(part for part in placement if part.node in nodes)


def _guessed(
    job: Job, part: Allocation, node: Node | None, taken: dict[tuple[NodeName, int], int]
) -> Iterator[CardSlice]:
    wanted = job.spec.specs[0]
    left = wanted.card_milli
    cards = node.cards if node is not None else ()
    for card in cards:
        if wanted.card_models and card.model not in wanted.card_models:
            continue
        before = taken.get((part.node, card.index), 0)
        milli = min(left, WHOLE_CARD)
        if left > 0 and before + milli <= WHOLE_CARD:
            left -= milli
            yield from _pieces(card, before, milli)


def _pieces(card: Card, before: int, milli: int) -> Iterator[CardSlice]:
    """So much of a card behind what is taken before: in instances where it is cut into them."""
    if milli == WHOLE_CARD:
        yield CardSlice(card.index, None)
    elif card.slices:
        size = slot_milli(card)
        yield from (CardSlice(card.index, before // size + slot, size) for slot in range(milli // size))
    else:
        yield CardSlice(card.index, 0, milli)
