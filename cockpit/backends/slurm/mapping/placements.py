"""Places running jobs on nodes and cards, by `scontrol -d show job` where it lists the job, else by a likely guess.

Each node lists its cards in use. Which job has which of them only `scontrol -d show job` says, and that is read less
often, and may be hidden. `UnattributedGpus` assigns cards to a running job that it does not list yet:

1. Take cards in use on its node that no listed job has, of the model and size that the job asked for (`_take_listed`).
2. If they are not enough, take the first free cards of that model (`_take_free`): the node's list may be older.
3. Cards in use that remain belong to jobs that the user may not see (`others`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from cockpit.backends.slurm.mapping.nodes import NO_CARDS, Cards, SlurmNode
from cockpit.backends.slurm.mapping.records import Record, job_blocks
from cockpit.backends.slurm.mapping.values import hosts, job_id, memory_mib, numbers
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import OCCUPYING, Job, JobState
from cockpit.model.node import Allocation, Card, CardSlice, Node, Placement
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.nodes.cards import slot_milli

Known = Mapping[JobId, Mapping[NodeName, Allocation]]
"""Allocations that `scontrol -d show job` lists, by job and node."""
NOTHING_KNOWN: Known = {}
OTHERS = ""
"""Owner of cards in use that belong to no visible job."""


class UnattributedGpus:
    """Cards in use whose job is unknown. Jobs without a listed allocation take theirs from here one after the other."""

    def __init__(self, nodes: Iterable[SlurmNode] = (), known: Known = NOTHING_KNOWN) -> None:
        listed = [(part.node, each) for parts in known.values() for part in parts.values() for each in part.slices]
        # Whole pieces that jobs are known to have, and cards of which they have any part.
        pieces = {(name, each.card, each.slot) for name, each in listed}
        cards = {(name, each.card) for name, each in listed}
        self._free_slices: dict[NodeName, list[CardSlice]] = {}
        self._used_milli: dict[tuple[NodeName, int], int] = {}
        """Thousandths of a card in use, by node and card index."""
        for seen in nodes:
            name, shards = seen.node.name, seen.gres.shards_per_card
            self._free_slices[name] = [
                each
                for each in seen.in_use
                # Where cards are cut into shards, Slurm's list has no shard numbers: a known share makes the whole card
                # known.
                if (name, each.card, each.slot) not in pieces and not (shards and (name, each.card) in cards)
            ]
            self.hold(name, self._free_slices[name])

    def hold(self, node: NodeName, pieces: Iterable[CardSlice]) -> None:
        """Count these card slices of the node as in use."""
        for each in pieces:
            self._used_milli[node, each.card] = self._used_milli.get((node, each.card), 0) + each.milli

    def take(self, name: NodeName, node: Node | None, wanted: NodeSpec) -> tuple[CardSlice, ...]:
        """Return the card slices that a job with this spec probably has on the node, and count them as its own."""
        cards = [
            card
            for card in (node.cards if node is not None else ())
            if not wanted.card_models or card.model in wanted.card_models
        ]
        claimed = list(self._take_listed(name, cards, wanted))
        guessed = list(self._take_free(name, cards, wanted.card_milli - sum(each.milli for each in claimed)))
        self.hold(name, guessed)
        return (*claimed, *guessed)

    def others(self) -> dict[str, tuple[Placement, ...]]:
        """Return the remaining card slices in use as placements of jobs that the user may not see."""
        placements = [(Allocation(0, name, 0, 0, tuple(rest)),) for name, rest in self._free_slices.items() if rest]
        return {OTHERS: tuple(placements)} if placements else {}

    def _take_listed(self, name: NodeName, cards: Iterable[Card], wanted: NodeSpec) -> Iterator[CardSlice]:
        """Take slices that the node lists as in use.

        For shards only the card is used, not their number: Slurm miscounts them in the list of nodes.
        """
        # `cut`: whether MIG divides the card, by its index; only cards of the wanted model are in it.
        cut, missing = {card.index: bool(card.slices) for card in cards}, wanted.card_milli
        left = self._free_slices.get(name, [])
        # A copy, because claimed pieces are removed from `left`.
        for piece in [*left]:
            is_share = piece.slot is not None
            if missing <= 0 or piece.card not in cut or not (cut[piece.card] or is_share == wanted.shares_a_card):
                continue
            left.remove(piece)
            claimed = piece if cut[piece.card] else replace(piece, milli=min(missing, WHOLE_CARD))
            # Correct the amount that was counted for the piece to the amount that the job really takes.
            self.hold(name, [replace(piece, milli=claimed.milli - piece.milli)])
            missing -= claimed.milli
            yield claimed

    def _take_free(self, name: NodeName, cards: Iterable[Card], missing: int) -> Iterator[CardSlice]:
        """Take `missing` thousandths of cards from the first cards that have that much free."""
        for card in cards:
            before = self._used_milli.get((name, card.index), 0)
            milli = min(missing, WHOLE_CARD)
            # A card with less than that free is skipped: a share lies on one card.
            if missing > 0 and before + milli <= WHOLE_CARD:
                missing -= milli
                yield from _pieces(card, before, milli)


def _pieces(card: Card, before: int, milli: int) -> Iterator[CardSlice]:
    """Return `milli` thousandths of a card after the first `before` thousandths; whole MIG instances if it has them."""
    if milli == WHOLE_CARD:
        yield CardSlice(card.index, None)
    elif card.slices:
        size = slot_milli(card)
        yield from (CardSlice(card.index, before // size + slot, size) for slot in range(milli // size))
    else:
        yield CardSlice(card.index, 0, milli)


# -d adds a line, indented by five blanks, for each group of nodes with equal allocations: `Nodes=n[2-4] CPU_IDs=0-7
# Mem=32768 GRES=gpu:h100:8(IDX:0-7)`.
_LINE = re.compile(r"^ {5}Nodes=(\S*) CPU_IDs=(\S*) Mem=(\S*) GRES=(.*)$", re.MULTILINE)
_HEAD = re.compile(r"^JobId=(\d+)(?: ArrayJobId=(\d+) ArrayTaskId=(\d+))?")
NO_GRES: Mapping[NodeName, Cards] = {}
DETAIL = ("scontrol", "--all", "-d", "show", "job")
"""`--all`: also jobs in hidden partitions, which squeue lists (`--all`), too."""


def allocation_records(printed: str, names: Iterable[str] = ()) -> Iterator[Record]:
    """Yield the allocations in the output of `scontrol -d show job`, one record for each line with nodes. `names`: like
    `job_blocks`."""
    for block in job_blocks(printed, names):
        head = _HEAD.match(block)
        if head is None:
            continue
        job = dict(zip(("JobId", "ArrayJobId", "ArrayTaskId"), head.groups(default=""), strict=True))
        # behind these lines come texts of users, in which others may look the same
        for line in _LINE.finditer(block.partition("\n   MinCPUsNode=")[0]):
            yield {**job, "Nodes": line[1], "CPUs": str(len(numbers(line[2]))), "Mem": line[3], "GRES": line[4]}


def details(
    records: Iterable[Record], gres: Mapping[NodeName, Cards] = NO_GRES
) -> dict[JobId, dict[NodeName, Allocation]]:
    """Return the allocations by job and node; all of them with rank 0."""
    by_job: dict[JobId, dict[NodeName, Allocation]] = {}
    for each in records:
        task = each["ArrayTaskId"]
        # Slurm's own number of a task differs from its id here, which stays the same while it waits.
        job = job_id(int(each["ArrayJobId"] or each["JobId"]), int(task) if task else None)
        for node in hosts(each["Nodes"]):
            slices = tuple(gres.get(node, NO_CARDS).held(each["GRES"]))
            allocation = Allocation(0, node, int(each["CPUs"]), memory_mib(each["Mem"]) or 0, slices)
            by_job.setdefault(job, {})[node] = allocation
    return by_job


def place_jobs(
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
        _number_shares(_with_placement(job, nodes, known.get(job.id, {}), unattributed), nodes, slots)
        if job.state in OCCUPYING
        else job
        for job in jobs
    ]


def _number_shares(job: Job, nodes: Mapping[NodeName, Node], slots: Counter[tuple[NodeName, int]]) -> Job:
    """Number the shares that jobs have of one card, from 0; MIG instances have numbers of their own."""
    if job.attempt is None or not job.spec.specs[0].shares_a_card:
        return job
    parts = []
    for part in job.attempt.placement:
        # Unknown nodes are gone already (`_within`).
        cut = {card.index for card in nodes[part.node].cards if card.slices}
        slices = tuple(
            each if each.card in cut else replace(each, slot=slots[part.node, each.card]) for each in part.slices
        )
        slots.update((part.node, each.card) for each in slices)
        parts.append(replace(part, slices=slices))
    return replace(job, attempt=replace(job.attempt, placement=tuple(parts)))


def _with_placement(
    job: Job, nodes: Mapping[NodeName, Node], known: Mapping[NodeName, Allocation], unattributed: UnattributedGpus
) -> Job:
    """Return the job with what it holds on each node: by its details if they are known, else an estimate."""
    attempt = job.attempt
    if attempt is None:
        # Without nodes or a start it has no place, and a job without a place cannot count as running.
        return replace(job, state=JobState.QUEUED)
    parts = []
    for part in attempt.placement:
        allocation = known.get(part.node)
        if allocation is None:
            node = nodes.get(part.node)
            slices = unattributed.take(part.node, node, job.spec.specs[0])
            # squeue has the sum of a job's CPUs: an equal share of it may be more than a small node has.
            cpus = part.cpus if node is None else min(part.cpus, node.cpus)
            memory = part.memory_mib if node is None else min(part.memory_mib, node.memory_mib)
            allocation = replace(part, cpus=cpus, memory_mib=memory, slices=slices)
        parts.append(replace(allocation, rank=part.rank))
    return replace(job, attempt=replace(attempt, placement=_within(tuple(parts), nodes)))


def _within(placement: Placement, nodes: Mapping[NodeName, Node]) -> Placement:
    """Keep the allocations on known nodes; others cannot be shown."""
    return tuple(part for part in placement if part.node in nodes)
