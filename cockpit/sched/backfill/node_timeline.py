"""The free resources of one node over time, by time limits: running jobs leave, jobs with reservations come and
leave."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import and_

from cockpit.model.ids import JobId, Millis
from cockpit.model.node import Allocation
from cockpit.model.spec import NodeSpec, TaskSpread
from cockpit.sched.nodes.node_free import NodeFree, shortfall

NEVER = Millis(1 << 62)
"""A moment after all others."""

Window = tuple[Millis, Millis]
"""The first and the last moment at which a replica may start and stay for its whole time limit."""


class NodeTimeline:
    """The free resources of one node in steps of time; a step lasts until the next one begins, the last one for ever.

    For requests of CPUs and memory alone, sums suffice. Cards must be distinguished: one card that is free now and
    another that is free later are no card for a job that needs one all the time. So on nodes with cards each step has
    its own `NodeFree`.
    """

    def __init__(self, now: Millis, node_free: NodeFree, ends: Mapping[JobId, Millis]) -> None:
        """`ends`: when each tenant is gone; a tenant that is not in it stays. Jobs over their time limit count as
        leaving in 1 ms."""
        self.now, self._empty = node_free, node_free.emptied()
        self._at = [now]
        self._cpus = [node_free.cpus]
        self._memory_mib = [node_free.memory_mib] if node_free.node.memory_mib else []
        """Free memory of each step, where the node's memory is known."""
        self._tenants = [len(node_free.tenants)]
        self._nodes_free = [node_free] if node_free.node.cards else []
        """The node's state in each step, where it has cards."""
        # `_leave` appends steps, so the tenants must leave in the order of their ends
        for end, job in sorted([(ends[job], job) for job in node_free.tenants if job in ends]):
            self._leave(Millis(end) if end > now else Millis(now + 1), job)

    def copy(self) -> NodeTimeline:
        """Return a copy that may be changed while this one stays."""
        fresh = NodeTimeline.__new__(NodeTimeline)
        fresh.now, fresh._empty = self.now, self._empty  # noqa: SLF001 - same class
        fresh._at, fresh._nodes_free = self._at.copy(), self._nodes_free.copy()  # noqa: SLF001 - same class
        fresh._cpus, fresh._memory_mib = self._cpus.copy(), self._memory_mib.copy()  # noqa: SLF001 - same class
        fresh._tenants = self._tenants.copy()  # noqa: SLF001 - same class
        return fresh

    def windows(self, spec: NodeSpec, span: int, *, exclusive: bool, after: Millis) -> Iterator[Window]:
        """Yield the windows in which a replica that stays for `span` ms may start, soonest first, none before `after`.
        Windows may touch."""
        if shortfall(self._empty, spec, exclusive=exclusive) is not None:
            return iter(())
        # cards must be the same ones all the time, so each step's state is compared; else the sums of each step suffice
        if spec.card_milli:
            return self._windows_by_cards(spec, span, after, exclusive=exclusive)
        return self._windows_by_sums(spec, span, after, exclusive=exclusive)

    def earliest(self, spec: NodeSpec, span: int, *, exclusive: bool, after: Millis) -> Millis | None:
        """Return the start of the first window; None: there is none."""
        # sums are compared below: cards need `windows`, and where the node's memory is not known no sums of it exist
        if spec.card_milli or spec.cpus > self._empty.cpus or spec.memory_mib > self._empty.memory_mib:
            window = next(self.windows(spec, span, exclusive=exclusive, after=after), None)
            return window[0] if window is not None else None
        first = self._step(after)
        at = [*self._at[first:], NEVER, NEVER + span]  # a sentinel that always fits ends the loop
        fits = [*self._fitting(first, spec, exclusive=exclusive), True, False]
        begin = end = 0
        while True:
            begin = fits.index(True, end)
            end = fits.index(False, begin)
            since = max(at[begin], after)
            if at[end] - since >= span:
                return Millis(since) if since < NEVER else None

    def narrowest(self, start: Millis, end: Millis) -> NodeFree:
        """Return what is free on the node all the time from `start` to `end`."""
        # `first` is the step that `start` is in; a step that begins exactly at `end` does not count
        first, last = self._step(start), bisect_left(self._at, end)
        if not self._nodes_free:
            cpus, memory_mib = min(self._cpus[first:last]), min(self._memory_mib[first:last], default=0)
            now = self.now
            return NodeFree(now.node, now.order, now.node_class, now.tenants, cpus, memory_mib, (), ())
        node_free = self._nodes_free[first]
        for other in self._nodes_free[first + 1 : last]:
            node_free = _common(node_free, other)
        return node_free

    def tasks_over(self, spec: NodeSpec, spread: TaskSpread, span: int, after: Millis) -> list[tuple[int, int]]:
        """Return how many tasks that stay for `span` ms the node could hold by its sums: moments from `after` on, each
        with the count of tasks that may start from then until the next one.

        The count changes where a step begins, and where the end of the stay reaches into a new step.
        """
        first = self._step(after)
        at, each = self._at[first:], spread.each
        counts = [free // each.cpus if free >= spec.cpus else 0 for free in self._cpus[first:]] if each.cpus else []
        if self._memory_mib and (spec.memory_mib or each.memory_mib):
            memory = [
                0 if free < spec.memory_mib else free // each.memory_mib if each.memory_mib else spread.tasks
                for free in self._memory_mib[first:]
            ]
            counts = [*map(min, counts, memory)] if counts else memory
        counts = counts or [spread.tasks] * len(at)
        if len(at) == 1:
            return [(after, counts[0])]
        # at `step - span + 1` ms a stay first reaches into the step, so the count may fall there
        moments = {after, *at[1:], *(begin for step in at[1:] if (begin := step - span + 1) > after)}
        return [
            (moment, min(counts[max(0, bisect_right(at, moment) - 1) : bisect_left(at, moment + span)]))
            for moment in sorted(moments)
        ]

    def next_step(self, moment: Millis) -> Millis | None:
        """Return the beginning of the step after the moment; None: the moment is in the last one."""
        return next(iter(self._at[bisect_right(self._at, moment) :]), None)

    def reserve(self, start: Millis, end: Millis, job: JobId, part: Allocation) -> None:
        """Reserve the part for the job from `start` to `end`."""
        # steps begin exactly at `start` and `end`, so all steps between them lose the whole part
        first, last = self._begin(start), self._begin(end)
        cpus, tenants, taken = self._cpus, self._tenants, part.cpus
        for step in range(first, last):
            cpus[step] -= taken
            tenants[step] += 1
        if self._memory_mib:
            self._memory_mib[first:last] = [free - part.memory_mib for free in self._memory_mib[first:last]]
        if self._nodes_free:
            self._nodes_free[first:last] = [
                node_free.with_tenant(job, part) for node_free in self._nodes_free[first:last]
            ]

    def release(self, start: Millis, end: Millis, job: JobId, part: Allocation) -> None:
        """Release a part that was reserved for the job from `start` to `end`."""
        # steps that began or ended with the reservation stay: two equal steps after each other change no answer
        first, last = self._begin(start), self._begin(end)
        for step in range(first, last):
            self._cpus[step] += part.cpus
            self._tenants[step] -= 1
        if self._memory_mib:
            self._memory_mib[first:last] = [free + part.memory_mib for free in self._memory_mib[first:last]]
        if self._nodes_free:
            self._nodes_free[first:last] = [node_free.without_tenant(job) for node_free in self._nodes_free[first:last]]

    def _windows_by_sums(self, spec: NodeSpec, span: int, after: Millis, *, exclusive: bool) -> Iterator[Window]:
        """Yield the windows for a replica without cards: runs of steps in which its CPUs and memory are free."""
        since: Millis | None = None
        first = self._step(after)
        for at, fits in zip(self._at[first:], self._fitting(first, spec, exclusive=exclusive), strict=True):
            if fits:
                if since is None:
                    since = max(at, after)
            elif since is not None:
                # the run of fitting steps is over: the last start is the one whose stay ends with it
                if at - since >= span:
                    yield since, Millis(at - span)
                since = None
        if since is not None:
            yield since, NEVER

    def _fitting(self, first: int, spec: NodeSpec, *, exclusive: bool) -> Iterable[bool]:
        """Return, for each step from `first` on, whether a replica without cards fits."""
        cpus, memory_mib = spec.cpus, spec.memory_mib
        fitting: Iterable[bool] = [free >= cpus for free in self._cpus[first:]]
        if memory_mib:
            fitting = map(and_, fitting, [free >= memory_mib for free in self._memory_mib[first:]])
        if exclusive:
            fitting = map(and_, fitting, [not count for count in self._tenants[first:]])
        return fitting

    def _windows_by_cards(self, spec: NodeSpec, span: int, after: Millis, *, exclusive: bool) -> Iterator[Window]:
        at = [*self._at, NEVER]
        for step in range(self._step(after), len(self._at)):
            until = self._fits_until(step, spec, span, exclusive=exclusive)
            earliest = max(at[step], after)
            # a window covers starts within this one step; starts in the next step have a window of their own
            latest = NEVER if until == NEVER == at[step + 1] else Millis(min(at[step + 1] - 1, until - span))
            if latest >= earliest:
                yield earliest, latest

    def _fits_until(self, step: int, spec: NodeSpec, span: int, *, exclusive: bool) -> Millis:
        """Return until when the same cards, CPUs and memory stay free from this step on; the step's start if they are
        not free in it."""
        node_free = self._nodes_free[step]
        for following in range(step, len(self._at)):
            node_free = node_free if following == step else _common(node_free, self._nodes_free[following])
            if shortfall(node_free, spec, exclusive=exclusive) is not None:
                return self._at[following]
            if following > step and self._at[following] >= self._at[step + 1] + span:
                return NEVER  # no start within this step reaches so far
        return NEVER

    def _step(self, moment: Millis) -> int:
        """Return the number of the step that the moment is in."""
        return max(0, bisect_right(self._at, moment) - 1)

    def _leave(self, end: Millis, job: JobId) -> None:
        """Let a tenant leave; called in the order of the ends."""
        if end != self._at[-1]:
            self._append(end)
        part = self.now.tenants[job]
        self._cpus[-1] += part.cpus
        self._tenants[-1] -= 1
        if self._memory_mib:
            self._memory_mib[-1] += part.memory_mib
        if self._nodes_free:
            self._nodes_free[-1] = self._nodes_free[-1].without_tenant(job)

    def _append(self, moment: Millis) -> None:
        """Add a step that is like the last one."""
        self._at.append(moment)
        self._cpus.append(self._cpus[-1])
        self._tenants.append(self._tenants[-1])
        if self._memory_mib:
            self._memory_mib.append(self._memory_mib[-1])
        if self._nodes_free:
            self._nodes_free.append(self._nodes_free[-1])

    def _begin(self, moment: Millis) -> int:
        """Return the number of the step that begins at the moment, which is made if there is none."""
        at = self._at
        # a new step begins with what the step before it has free
        step = bisect_left(at, moment)
        if step == len(at) or at[step] != moment:
            at.insert(step, moment)
            self._cpus.insert(step, self._cpus[step - 1])
            self._tenants.insert(step, self._tenants[step - 1])
            if self._memory_mib:
                self._memory_mib.insert(step, self._memory_mib[step - 1])
            if self._nodes_free:
                self._nodes_free.insert(step, self._nodes_free[step - 1])
        return step


def _common(one: NodeFree, other: NodeFree) -> NodeFree:
    """Return what is free in both states, card by card."""
    return NodeFree(
        one.node,
        one.order,
        one.node_class,
        {**one.tenants, **other.tenants},
        min(one.cpus, other.cpus),
        min(one.memory_mib, other.memory_mib),
        # a card counts only if it is idle in both states: a replica cannot change its card
        tuple(card for card in one.idle if card in other.idle),
        tuple(map(min, one.holes, other.holes)),
    )
