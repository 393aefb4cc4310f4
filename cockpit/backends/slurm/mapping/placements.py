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
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.nodes.cards import slot_milli

_LINE = re.compile(r"^ {5}Nodes=(\S*) CPU_IDs=(\S*) Mem=(\S*) GRES=(.*)$", re.MULTILINE)
_HEAD = re.compile(r"^JobId=(\d+)(?: ArrayJobId=(\d+) ArrayTaskId=(\d+))?")
OTHERS = ""
"""Whose cards they are that nobody is told of."""
NO_GRES: Mapping[NodeName, Cards] = {}
Unclaimed = dict[NodeName, list[CardSlice]]
"""Cards in use by node, of which it is not told whose they are."""
_Taken = dict[tuple[NodeName, int], int]
"""Thousandths in use by node and card."""
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


def unclaimed(nodes: Iterable[Seen], known: Mapping[JobId, Mapping[NodeName, Allocation]]) -> Unclaimed:
    """Cards that nodes say are in use, and no job that is told of has."""
    told = {
        (part.node, each.card, each.slot) for parts in known.values() for part in parts.values() for each in part.slices
    }
    shared = {(part.node, each.card) for parts in known.values() for part in parts.values() for each in part.slices}
    found: Unclaimed = {}
    for seen in nodes:
        name = seen.node.name
        found[name] = [
            each
            for each in seen.in_use
            if (name, each.card, each.slot) not in told
            and not (seen.gres.shards_per_card and (name, each.card) in shared)
        ]
    return found


def held_by_others(left: Unclaimed) -> dict[str, tuple[Placement, ...]]:
    """Of what nobody claimed: whose it is is not for the asker to know."""
    found = tuple([(Allocation(0, name, 0, 0, tuple(rest)),) for name, rest in left.items() if rest])
    return {OTHERS: found} if found else {}


def placed(
    jobs: Iterable[Job],
    nodes: Mapping[NodeName, Node],
    known: Mapping[JobId, Mapping[NodeName, Allocation]],
    left: Unclaimed | None = None,
) -> Iterator[Job]:
    """The same jobs, those that occupy something with their cards. Who has started since that was told takes of what is
    `left`, and nobody else has, on the nodes that it is on; where that is not enough, the first free cards of the right
    model."""
    jobs, left = list(jobs), left if left is not None else {}
    taken: _Taken = {}
    for name, pieces in left.items():
        _take(taken, name, pieces)
    for job in jobs:
        for part in known.get(job.id, {}).values() if job.state in OCCUPYING else ():
            _take(taken, part.node, part.slices)
    slots: Counter[tuple[NodeName, int]] = Counter()
    for job in jobs:
        if job.state in OCCUPYING:
            yield _numbered(_placed(job, nodes, known.get(job.id), taken, left), nodes, slots)
        else:
            yield job


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


def _take(taken: _Taken, node: NodeName, pieces: Iterable[CardSlice]) -> None:
    for each in pieces:
        taken[node, each.card] = taken.get((node, each.card), 0) + each.milli


def _placed(
    job: Job,
    nodes: Mapping[NodeName, Node],
    known: Mapping[NodeName, Allocation] | None,
    taken: _Taken,
    left: Unclaimed,
) -> Job:
    attempt = job.attempt
    if attempt is None:
        return replace(job, state=JobState.QUEUED)
    parts = []
    for part in attempt.placement:
        told = known.get(part.node) if known is not None else None
        if told is None:
            told = replace(part, slices=_untold(job, part.node, nodes.get(part.node), taken, left.get(part.node, [])))
        parts.append(replace(told, rank=part.rank))
    return replace(job, attempt=replace(attempt, placement=_within(tuple(parts), nodes)))


def _within(placement: Placement, nodes: Mapping[NodeName, Node]) -> Placement:
    """Only nodes that are known: others cannot be shown."""
    return tuple(part for part in placement if part.node in nodes)


def _untold(job: Job, name: NodeName, node: Node | None, taken: _Taken, left: list[CardSlice]) -> tuple[CardSlice, ...]:
    """Which cards of a node the job is likely to have."""
    wanted = job.spec.specs[0]
    usable = [
        card
        for card in (node.cards if node is not None else ())
        if not wanted.card_models or card.model in wanted.card_models
    ]
    claimed = _claimed(wanted, name, usable, taken, left)
    missing = wanted.card_milli - sum(each.milli for each in claimed)
    guessed = tuple(_guessed(missing, name, usable, taken))
    _take(taken, name, guessed)
    return (*claimed, *guessed)


def _claimed(
    wanted: NodeSpec, name: NodeName, usable: Iterable[Card], taken: _Taken, left: list[CardSlice]
) -> list[CardSlice]:
    """Taken out of what is left. Of shards a node says only on which card they are: Slurm miscounts them there."""
    cut = {card.index: bool(card.slices) for card in usable}
    claimed: list[CardSlice] = []
    missing = wanted.card_milli
    for piece in [*left]:
        is_share = piece.slot is not None
        if missing <= 0:
            break
        if piece.card not in cut or not (cut[piece.card] or is_share == wanted.shares_a_card):
            continue
        left.remove(piece)
        its = piece if cut[piece.card] else replace(piece, milli=min(missing, WHOLE_CARD))
        _take(taken, name, [replace(its, milli=its.milli - piece.milli)])
        claimed.append(its)
        missing -= its.milli
    return claimed


def _guessed(missing: int, name: NodeName, usable: Iterable[Card], taken: _Taken) -> Iterator[CardSlice]:
    for card in usable:
        before = taken.get((name, card.index), 0)
        milli = min(missing, WHOLE_CARD)
        if missing > 0 and before + milli <= WHOLE_CARD:
            missing -= milli
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
