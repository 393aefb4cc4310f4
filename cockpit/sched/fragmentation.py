"""Fragmentation gradient descent, a placement policy for clusters where many jobs share cards.

After "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", Weng et al.,
USENIX ATC 2023, section 4:

1. A node's fragmentation is measured against a target workload. For each request m of the workload, F(m) is what the
   node has free on cards but m cannot use: everything if m does not fit the node, else the cards with less free than m
   needs. F is the mean over the workload.
2. A job goes to the node where F grows least. Here the mean is left as a sum, so that everything stays an integer;
   equal growth is decided by best fit.

The growth of each node is cached per request, and only nodes that changed are computed again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import is_not, itemgetter, mul
from typing import NamedTuple

from cockpit.model.node import Card
from cockpit.model.spec import WHOLE_CARD, NodeSpec
from cockpit.sched.index import Index
from cockpit.sched.nodes.cards import accepts, share_taken
from cockpit.sched.nodes.node_free import NodeFree, share_rank, sharing_cards, whole_cards_taken
from cockpit.sched.placement import pinned
from cockpit.sched.policy import Target
from cockpit.sched.shape import Shape

_MOST_TARGETS = 100
"""The number of most frequent requests that are used, as in the paper's experiments."""

_STEP_MILLI = 40
"""Growth that differs by less counts as equal: best fit is then worth more than so small a difference. As large as the
steps of the published scheduler, whose scores are integers: 100 times the logistic function of the growth in cards,
rounded down."""

_MOST_WAYS, _MOST_RANKED = 200_000, 2_000_000
"""Bounds of the caches, so that memory is bounded."""


def workload(requests: Mapping[NodeSpec, int]) -> tuple[Target, ...]:
    """Return the most frequent of the requests that ask for cards, with their frequency, most frequent first."""
    asking = [(spec, often) for spec, often in requests.items() if spec.card_milli and often]
    return tuple(sorted(asking, key=_frequent_first)[:_MOST_TARGETS])


def target_workload(queued: Iterable[Shape], running: Mapping[NodeSpec, int]) -> tuple[Target, ...]:
    """Return the target workload: the requests of the jobs that are queued and running now, which are taken as a sample
    of those to come.

    Frequencies are rounded down to two binary digits. So what was computed for a workload holds until it really
    changes, not only until the next job comes.
    """
    # running jobs are counted by what they hold, queued ones by their first alternative
    count = Counter(running)
    for shape, jobs in Counter(queued).items():
        count[shape.specs[0]] += shape.nodes * jobs
    return workload({spec: _rounded(often) for spec, often in count.items()})


def fragmentation(node_free: NodeFree, targets: Sequence[Target]) -> int:
    """Return the thousandths of cards that are free on the node but unusable for the workload, summed over its
    requests."""
    measure = WorkloadMeasure(targets)
    free = sum(map(node_free.free_milli, range(len(node_free.holes))))
    usable = measure.usable(node_free.node.cards, node_free.idle, node_free.holes)
    return free * measure.weight - measure.of(node_free.cpus, node_free.memory_mib, usable)


def _rounded(often: int) -> int:
    # only the two highest bits stay
    low = max(0, often.bit_length() - 2)
    return often >> low << low


def _frequent_first(target: Target) -> tuple[object, ...]:
    spec, often = target
    return -often, spec.card_milli, spec.cpus, spec.memory_mib, spec.card_models


class _Way(NamedTuple):
    """A way to put a replica on a node whose cards are in some state."""

    card: int | None
    """The card to share; None for whole cards or none."""
    taken: int
    """Thousandths."""
    usable: Usable
    """Afterwards."""


Ways = tuple[tuple[bool, int], list[_Way]]
"""The fit of the node's cards (as in `node_free.best_fit_rank`), and the ways to put a replica there, best fit
first."""

Entry = tuple[int, bool, int, int, int, int]
"""Growth of fragmentation, then `node_free.best_fit_rank`."""


class GradientDescent:
    """The placement policy `placement.Fit` by least growth of fragmentation; holds while nodes and workload stay the
    same.

    Its caches change no answer, but it serves one cycle at a time.
    """

    def __init__(self, targets: tuple[Target, ...]) -> None:
        self.targets = targets
        self._measure = WorkloadMeasure(targets)
        self._step = _STEP_MILLI * max(1, self._measure.weight)
        self._ways: dict[object, Ways | None] = {}
        self._usable: dict[object, Usable] = {}
        self._rankings: dict[NodeSpec, _Ranking] = {}

    def nodes_free(self, index: Index, shape: Shape, spec: NodeSpec) -> Iterator[NodeFree]:
        """Yield every node that holds one replica now, least growth first."""
        if spec not in self._rankings and len(self._rankings) * len(index.nodes_free) > _MOST_RANKED:
            self._rankings.clear()
        ranking = self._rankings.setdefault(spec, _Ranking())
        ranking.follow(index.nodes_free, self, spec)
        node_classes = {node_class.number for node_class in index.layout.classes_for(shape, spec)}
        pins = {node_free.order for node_free in pinned(index, shape)} if shape.node_names else None
        nodes_free = (index.nodes_free[entry[-1]] for entry in ranking.entries)
        return (
            node_free
            for node_free in nodes_free
            if (node_free.node_class in node_classes if pins is None else node_free.order in pins)
        )

    def ranked(self, nodes_free: Sequence[NodeFree], spec: NodeSpec) -> list[NodeFree]:
        """Return those of the nodes that hold one replica, least growth first."""
        entries = [(entry, node_free) for node_free in nodes_free if (entry := self.entry(node_free, spec)) is not None]
        return [node_free for _, node_free in sorted(entries, key=itemgetter(0))]

    def card(self, node_free: NodeFree, spec: NodeSpec) -> int | None:
        """Return the card to share on a node where the replica fits; None for whole cards or none."""
        ways = self._ways_of(node_free, spec)
        return None if ways is None else self._best(node_free, spec, ways[1])[1]

    def entry(self, node_free: NodeFree, spec: NodeSpec) -> Entry | None:
        """Return the node's sort key; None where the replica does not fit."""
        # first, since it needs no look at the cards
        if node_free.cpus < spec.cpus or node_free.memory_mib < spec.memory_mib:
            return None
        ways = self._ways_of(node_free, spec)
        if ways is None:
            return None
        growth, _ = self._best(node_free, spec, ways[1])
        return (growth, *ways[0], node_free.cpus, node_free.memory_mib, node_free.order)

    def _best(self, node_free: NodeFree, spec: NodeSpec, ways: list[_Way]) -> tuple[int, int | None]:
        """Return (steps of growth, card) of the way with least growth; ties by best fit."""
        measure, step = self._measure, self._step
        before = measure.of(node_free.cpus, node_free.memory_mib, self._usable_of(node_free))
        cpus, memory_mib = node_free.cpus - spec.cpus, node_free.memory_mib - spec.memory_mib
        least, card = None, None
        for way in ways:
            # F before and after differ by what the workload could use of the node, less what the replica itself takes
            growth = before - measure.of(cpus, memory_mib, way.usable) - way.taken * measure.weight
            # in whole steps: growth that differs by less is a tie, which best fit decides
            growth = -(-growth // step)
            if least is None or growth < least:
                least, card = growth, way.card
        assert least is not None
        return least, card

    def _usable_of(self, node_free: NodeFree) -> Usable:
        # what the cards can serve depends on nothing else, so equal nodes share the figure
        key = (node_free.node_class, node_free.idle, node_free.holes)
        if key not in self._usable:
            self._usable[key] = self._measure.usable(node_free.node.cards, node_free.idle, node_free.holes)
        return self._usable[key]

    def _ways_of(self, node_free: NodeFree, spec: NodeSpec) -> Ways | None:
        key = (node_free.node_class, node_free.idle, node_free.holes, spec.card_milli, spec.card_models)
        if key not in self._ways:
            if len(self._ways) > _MOST_WAYS:
                self._ways.clear()
                self._usable.clear()
            self._ways[key] = self._found_ways(node_free, spec)
        return self._ways[key]

    def _found_ways(self, node_free: NodeFree, spec: NodeSpec) -> Ways | None:
        """Return the ways to put a replica on the node, by its cards alone; None: there is none."""
        if spec.shares_a_card:
            cards = sharing_cards(node_free, spec)
            # cards that are alike lead to the same growth, so one of them is tried
            ways = [self._sharing(node_free, spec, card) for card in _distinct(node_free, cards)]
            return (share_rank(node_free, cards[0]), ways) if ways else None
        taken = whole_cards_taken(node_free, spec)
        if len(taken) < spec.whole_cards:
            return None
        holes = tuple(0 if card in taken else hole for card, hole in enumerate(node_free.holes))
        return (True, len(node_free.idle)), [self._way(node_free, None, WHOLE_CARD * len(taken), taken, holes)]

    def _sharing(self, node_free: NodeFree, spec: NodeSpec, card: int) -> _Way:
        milli = share_taken(node_free.node.cards[card], spec.card_milli)
        holes = tuple(hole - milli if each == card else hole for each, hole in enumerate(node_free.holes))
        return self._way(node_free, card, node_free.free_milli(card) - holes[card], (card,), holes)

    def _way(
        self, node_free: NodeFree, card: int | None, milli: int, cards: Collection[int], holes: tuple[int, ...]
    ) -> _Way:
        idle = tuple(each for each in node_free.idle if each not in cards)
        return _Way(card, milli, self._measure.usable(node_free.node.cards, idle, holes))


class _Ranking:
    """The nodes that hold one replica of a request, best first, as of the last update."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._nodes_free: list[NodeFree | None] = []
        self._entry_of: list[Entry | None] = []

    def follow(self, nodes_free: Sequence[NodeFree], descent: GradientDescent, spec: NodeSpec) -> None:
        """Compute the nodes again that have changed."""
        if not self._nodes_free:
            self._nodes_free, self._entry_of = [None] * len(nodes_free), [None] * len(nodes_free)
        # by identity: a node's state is replaced when it changes, never changed in place
        changed = list(compress(range(len(nodes_free)), map(is_not, nodes_free, self._nodes_free)))
        # to sort once is quicker than many single moves in a long list
        sorts_again = len(changed) > len(nodes_free) // 8
        for order in changed:
            entry = descent.entry(nodes_free[order], spec)
            if not sorts_again:
                self._move(self._entry_of[order], entry)
            self._nodes_free[order], self._entry_of[order] = nodes_free[order], entry
        if sorts_again:
            self.entries = sorted(filter(None, self._entry_of))

    def _move(self, old: Entry | None, new: Entry | None) -> None:
        if old is not None:
            del self.entries[bisect_left(self.entries, old)]
        if new is not None:
            insort(self.entries, new)


def _distinct(node_free: NodeFree, cards: Iterable[int]) -> list[int]:
    """Return the first of each group of cards that are alike."""
    first: dict[object, int] = {}
    for index in cards:
        card = node_free.node.cards[index]
        first.setdefault((card.model, card.slices, index in node_free.idle, node_free.holes[index]), index)
    return list(first.values())


Usable = tuple[int, ...]
"""Thousandths of cards that each kind of request can use, by the cards alone."""


class WorkloadMeasure:
    """A target workload, prepared so that a node is measured in a few steps: requests that want the same of the cards
    share one figure per state of the cards; their CPUs and memory only decide how much that figure weighs."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self.weight = sum(weight for _, weight in targets)
        self._targets = targets
        self._wants = list(dict.fromkeys((spec.card_milli, spec.card_models) for spec, _ in targets))
        self._cpus = sorted({spec.cpus for spec, _ in targets})
        self._memory = sorted({spec.memory_mib for spec, _ in targets})
        self._weights: dict[tuple[int, int], tuple[int, ...]] = {}

    def of(self, cpus: int, memory_mib: int, usable: Usable) -> int:
        """Return what the whole workload can use with these free CPUs and this free memory."""
        # which requests fit changes only at the amounts that some request names, so weights are kept by step
        steps = (bisect_right(self._cpus, cpus), bisect_right(self._memory, memory_mib))
        weights = self._weights.get(steps) or self._weigh(steps)
        return sum(map(mul, weights, usable))

    def usable(self, cards: Sequence[Card], idle: Collection[int], holes: Sequence[int]) -> Usable:
        """Return what each kind of request can use of the cards; `idle` and `holes` as in `NodeFree`."""
        return tuple(_usable(milli, models, cards, idle, holes) for milli, models in self._wants)

    def _weigh(self, steps: tuple[int, int]) -> tuple[int, ...]:
        most_cpus, most_memory = self._cpus[: steps[0]][-1:], self._memory[: steps[1]][-1:]
        weights = dict.fromkeys(self._wants, 0)
        for spec, weight in self._targets:
            if most_cpus and most_memory and spec.cpus <= most_cpus[0] and spec.memory_mib <= most_memory[0]:
                weights[spec.card_milli, spec.card_models] += weight
        self._weights[steps] = tuple(weights.values())
        return self._weights[steps]


def _usable(
    milli: int, models: tuple[str, ...], cards: Sequence[Card], idle: Collection[int], holes: Sequence[int]
) -> int:
    """Return the thousandths of these cards that a request can use, if its CPUs and memory do not matter."""
    spec = NodeSpec(card_milli=milli, card_models=models)
    accepted = [card for card in cards if accepts(spec, card)]
    if not spec.shares_a_card:
        count = sum(card.index in idle for card in accepted)
        # whole-card requests can use all idle cards or, if too few are idle, none
        return WHOLE_CARD * count if count >= spec.whole_cards else 0
    enough = (card.index for card in accepted if share_taken(card, milli) <= holes[card.index])
    return sum(WHOLE_CARD if index in idle else holes[index] for index in enough)
