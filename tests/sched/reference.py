"""A scheduler that is slow and plainly right: no index, no memory, every question answered by counting from scratch.

It shares no code with `cockpit.sched`, so that the two agree only where both follow the rules.
"""

from __future__ import annotations

from itertools import combinations, count, product

from msgspec.structs import replace

from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Allocation, Card, CardSlice, Node, NodeState, Placement
from cockpit.model.spec import JobSpec, NodeSpec

Occupied = dict[JobId, Placement]


class Free:
    """What is free on one node, counted from everything that is occupied."""

    def __init__(self, node: Node, occupied: Occupied) -> None:
        self.node = node
        here = [part for placement in occupied.values() for part in placement if part.node == node.name]
        self.empty = not here
        self.cpus = node.cpus - sum(part.cpus for part in here)
        self.memory_mib = node.memory_mib - sum(part.memory_mib for part in here)
        slices = [each for part in here for each in part.slices]
        self.on_card = [[each for each in slices if each.card == card.index] for card in node.cards]

    def idle(self, models: tuple[str, ...] = ()) -> list[Card]:
        return [
            card
            for card in self.node.cards
            if not self.on_card[card.index] and not card.slice_uuids and (not models or card.model in models)
        ]

    def share_cards(self, spec: NodeSpec) -> list[tuple[int, int, Card]]:
        """(1 if idle, hole, card), best first, of cards that can take the share."""
        usable = []
        for card in self.node.cards:
            if spec.card_models and card.model not in spec.card_models:
                continue
            hole = self.hole(card)
            if share_slots(card, spec.card_milli) * slot_size(card, spec.card_milli) <= hole:
                idle = card in self.idle()
                usable.append((int(idle), 0 if idle else hole, card.slices == 0, card.index, card))
        return [(idle, hole, card) for idle, hole, _, _, card in sorted(usable, key=lambda each: each[:4])]

    def hole(self, card: Card) -> int:
        used = sum(each.milli for each in self.on_card[card.index])
        return max(0, (card.slices * (1000 // card.slices) if card.slices else 1000) - used)

    def fits(self, job: JobSpec, spec: NodeSpec) -> bool:
        if self.node.state is not NodeState.UP or not suits(self.node, job) or (job.exclusive and not self.empty):
            return False
        if 0 < spec.card_milli < 1000:
            has_cards = bool(self.share_cards(spec))
        else:
            has_cards = len(self.idle(spec.card_models)) >= spec.card_milli // 1000
        return has_cards and self.cpus >= spec.cpus and self.memory_mib >= spec.memory_mib

    def rank(self, spec: NodeSpec) -> tuple[int, ...]:
        label = (1, len(self.idle()))
        if 0 < spec.card_milli < 1000:
            idle, hole, _ = self.share_cards(spec)[0]
            label = (1, len(self.idle())) if idle else (0, hole)
        return (*label, self.cpus, self.memory_mib)

    def give(self, job: JobSpec, spec: NodeSpec, rank: int) -> Allocation:
        name = self.node.name
        if job.exclusive:
            every = tuple(part for card in self.node.cards for part in all_of(card))
            return Allocation(rank, name, self.node.cpus, self.node.memory_mib, every)
        if 0 < spec.card_milli < 1000:
            _, _, card = self.share_cards(spec)[0]
            used = {each.slot for each in self.on_card[card.index]}
            slots = [slot for slot in range(1001) if slot not in used][: share_slots(card, spec.card_milli)]
            slices = tuple(CardSlice(card.index, slot, slot_size(card, spec.card_milli)) for slot in slots)
        else:
            idle = sorted(self.idle(spec.card_models), key=lambda card: (card.slices > 0, card.index))
            taken = sorted(card.index for card in idle[: spec.card_milli // 1000])
            slices = tuple(CardSlice(index, None, 1000) for index in taken)
        return Allocation(rank, name, spec.cpus, spec.memory_mib, slices)


def slot_size(card: Card, milli: int) -> int:
    return 1000 // card.slices if card.slices else milli


def share_slots(card: Card, milli: int) -> int:
    return next(slots for slots in count(1) if slots * slot_size(card, milli) >= milli)


def all_of(card: Card) -> list[CardSlice]:
    if not card.slice_uuids:
        return [CardSlice(card.index, None, 1000)]
    return [CardSlice(card.index, slot, 1000 // card.slices) for slot in range(card.slices)]


def put_up_with(job: JobSpec) -> set[str]:
    return {each.text for each in job.tolerations}


def suits(node: Node, job: JobSpec) -> bool:
    return (
        (job.pool == node.pool or (job.pool is None and not node.dedicated))
        and set(job.node_selector.items()) <= set(node.labels.items())
        and all({"*", each.key, f"{each.key}={each.value}"} & put_up_with(job) for each in node.taints)
        and job.driver_version in (None, node.driver_version)
        and (not job.node_names or node.name in job.node_names)
    )


def place(job: JobSpec, nodes: list[Node], occupied: Occupied, avoid: frozenset = frozenset()):
    """Return (spec index, placement), or None where the job does not fit."""
    return best([Free(node, occupied) for node in nodes if node.name not in avoid], job)


def kinds_of(job: JobSpec) -> list[tuple[tuple[NodeSpec, ...], int]]:
    """The alternatives of each kind of its replicas, and how many there are of it; the most demanding first."""
    alike = job.specs if len(job.specs) == 1 else ()
    kinds = [(job.specs, job.nodes + sum(spec in alike for spec in job.helpers))]
    kinds += [((spec,), job.helpers.count(spec)) for spec in dict.fromkeys(job.helpers) if spec not in alike]
    return sorted(kinds, key=lambda kind: demand(kind[0][0]), reverse=True)


def best(frees: list[Free], job: JobSpec):
    """(spec index, placement) on these nodes, each in the cluster's order; every kind chooses from what is left."""
    kinds = kinds_of(job)
    found = one_by_one(frees, job, kinds) or together(frees, job, kinds)
    if found is None:
        return None
    numbers, given = found
    of_kind = {specs: iter(frees) for specs, frees in given.items()}
    number = numbers[job.specs]
    asked = [(job.specs, job.specs[number])] * job.nodes + [((spec,), spec) for spec in job.helpers]
    return number, tuple(next(of_kind[kind]).give(job, spec, rank) for rank, (kind, spec) in enumerate(asked))


def one_by_one(frees: list[Free], job: JobSpec, kinds):
    given: dict[tuple, list] = {}
    numbers = {}
    left = list(frees)
    for specs, wanted in kinds:
        found = chosen(left, job, specs, wanted)
        if found is None:
            return None
        numbers[specs], given[specs] = found
        left = [free for free in left if free not in given[specs]]
    return numbers, given


def together(frees: list[Free], job: JobSpec, kinds):
    """By every choice of nodes, the best first, where a kind that chooses by itself leaves none for another."""
    for numbers in product(*(range(len(specs)) for specs, _ in kinds)):
        each = [(specs[number], wanted) for (specs, wanted), number in zip(kinds, numbers, strict=True)]
        if given := next(choices(frees, job, each), None):
            orders = [sorted(nodes, key=frees.index) for nodes in given]
            names = [specs for specs, _ in kinds]
            return dict(zip(names, numbers, strict=True)), dict(zip(names, orders, strict=True))
    return None


def choices(frees: list[Free], job: JobSpec, kinds):
    if not kinds:
        yield []
        return
    (spec, wanted), *others = kinds
    fitting = [(free.rank(spec), order, free) for order, free in enumerate(frees) if free.fits(job, spec)]
    ranked = [free for _, _, free in sorted(fitting, key=lambda each: each[:2])]
    for nodes in combinations(ranked, wanted):
        left = [free for free in frees if free not in nodes]
        for rest in choices(left, job, others):
            yield [list(nodes), *rest]


def could_start(job: JobSpec, nodes: list[Node]) -> bool:
    """Whether waiting may help: all kinds of replicas fit on empty nodes."""
    return best([Free(node, {}) for node in nodes], job) is not None


def chosen(frees: list[Free], job: JobSpec, specs: tuple[NodeSpec, ...], wanted: int):
    """(spec index, nodes) for so many replicas of one kind, or None."""
    for number, spec in enumerate(specs):
        fitting = [(free.rank(spec), order, free) for order, free in enumerate(frees) if free.fits(job, spec)]
        tightest = sorted(fitting, key=lambda each: each[:2])[:wanted]
        if len(tightest) == wanted:
            return number, [free for _, _, free in sorted(tightest, key=lambda each: each[1])]
    return None


def demand(spec: NodeSpec) -> tuple[int, int, int]:
    return spec.card_milli, spec.cpus, spec.memory_mib


def request(job: JobSpec) -> tuple:
    """What jobs have in common that fail for one reason."""
    where = (job.node_names, job.pool, job.driver_version, job.node_selector, job.tolerations)
    return (job.nodes, job.specs, job.helpers, *where, job.exclusive)


class Reference:
    """One cycle over a world. Afterwards: `starts`, `reservation`, and a word for each job that waits."""

    def __init__(self, world, *, backfill: bool = True) -> None:
        self.nodes = list(world.nodes.values())
        self.now = world.now
        self.backfill = backfill
        self.occupied, self.ends = dict(world.occupied), dict(world.ends)
        self.starts: list[tuple] = []
        self.words: dict[JobId, str] = {}
        self.head = None
        self.somebody_waits = False
        failed: list[tuple] = []
        for job in world.queue:
            shape = request(job.spec)
            before = [word for known, word in failed if known == shape]
            late = not backfill or (self.head is not None and self.end(job) > self.head[2])
            if job.held_by:
                self.words[job.id] = "held"
            elif before and (before[-1] != "would delay" or late):
                self.words[job.id] = before[-1]
            elif word := self.consider(job):
                self.words[job.id] = word
                failed.append((shape, word))
        # a job that would have delayed the head no longer fits at all if other jobs took the resources
        last = dict(failed_in_order(failed))
        for job in world.queue:
            if self.words.get(job.id) == "would delay":
                self.words[job.id] = last[repr(request(job.spec))] if self.fits_now(job) else "no room"
        self.reservation = self._reservation() if self.head else None

    def fits_now(self, job) -> bool:
        return place(job.spec, self.nodes, self.occupied) is not None

    def end(self, job) -> Millis:
        return Millis(self.now + 1000 * job.spec.time_limit_seconds)

    def consider(self, job) -> str:
        if not could_start(job.spec, self.nodes):
            return "never"
        found = place(job.spec, self.nodes, self.occupied)
        if found is None:
            self.head = self.head or self.find_head(job)
            self.somebody_waits = True
            return "no room"
        if self.somebody_waits and not self.backfill:
            return "would delay"
        if self.head:
            found = self.place_behind_head(job, found)
        if found is None:
            return "would delay"
        self.starts.append((job.id, *found))
        self.occupied[job.id], self.ends[job.id] = found[1], self.end(job)
        return ""

    def find_head(self, job):
        for moment in sorted({max(self.now, end) for end in self.ends.values()}):
            if place(job.spec, self.nodes, self.still_there(moment)):
                return job.id, job.spec, moment
        return None

    def still_there(self, moment: Millis) -> Occupied:
        return {
            job: placement
            for job, placement in self.occupied.items()
            if job not in self.ends or max(self.now, self.ends[job]) > moment
        }

    def place_behind_head(self, job, found):
        _, head, moment = self.head
        if self.end(job) <= moment:
            return found
        then = self.still_there(moment)
        if place(head, self.nodes, {**then, job.id: found[1]}):
            return found
        reserved = frozenset(part.node for part in place(head, self.nodes, then)[1])
        other = place(job.spec, self.nodes, self.occupied, reserved)
        if other and place(head, self.nodes, {**then, job.id: other[1]}):
            return other
        return self.by_another(job, found[0] + 1)

    def by_another(self, job, first):
        """By the alternatives from that one on."""
        rest = replace(job, spec=replace(job.spec, specs=job.spec.specs[first:]))
        found = place(rest.spec, self.nodes, self.occupied) if rest.spec.specs else None
        found = found and self.place_behind_head(rest, found)
        return found and (first + found[0], found[1])

    def _reservation(self):
        job, spec, moment = self.head
        return (job, moment, *place(spec, self.nodes, self.still_there(moment)))


def failed_in_order(failed):
    return ((repr(shape), word) for shape, word in failed)


class Through(Free):
    """What is free on one node at each of several moments."""

    def __init__(self, node: Node, moments: list[Occupied]) -> None:
        frees = [Free(node, occupied) for occupied in moments]
        everybody = {job: placement for occupied in moments for job, placement in occupied.items()}
        super().__init__(node, everybody)
        self.frees = frees
        self.cpus = min(free.cpus for free in frees)
        self.memory_mib = min(free.memory_mib for free in frees)

    def idle(self, models: tuple[str, ...] = ()) -> list[Card]:
        return [card for card in self.node.cards if all(card in free.idle(models) for free in self.frees)]

    def hole(self, card: Card) -> int:
        return min(free.hole(card) for free in self.frees)


def holes(world) -> list[tuple]:
    """Yield (job, moment, spec index, placement) of conservative backfilling: each job gets the earliest slot that is
    left."""
    nodes, now = list(world.nodes.values()), world.now
    taken = [(now, max(now + 1, world.ends.get(job, FOREVER)), job, each) for job, each in world.occupied.items()]
    found = []
    for job in world.queue:
        if job.held_by:
            continue
        span = 1000 * job.spec.time_limit_seconds
        moments = sorted({now, *(end for _, end, _, _ in taken)} - {FOREVER})
        hole = next(
            (hole for moment in moments if (hole := hole_at(job.spec, nodes, taken, moment, moment + span))), None
        )
        if hole is not None:
            taken.append((hole[0], hole[0] + span, job.id, hole[2]))
            found.append((job.id, *hole))
    return found


FOREVER = Millis(1 << 62)


def hole_at(job: JobSpec, nodes: list[Node], taken: list[tuple], start: Millis, end: Millis):
    """Return (start, spec index, placement) if the job fits all the time from start to end."""
    moments = {start, *(begin for begin, _, _, _ in taken if start < begin < end)}
    then = [{job: each for begin, gone, job, each in taken if begin <= moment < gone} for moment in sorted(moments)]
    found = best([Through(node, then) for node in nodes], job)
    return (start, *found) if found else None
