"""Builds the rows of queues that clients get: every node of the quota tree, and every partition."""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING

from cockpit.engine.sharing import may_name, named_projects
from cockpit.model.ids import Millis
from cockpit.model.job import OCCUPYING
from cockpit.model.quota import JOBS, places, queue_name
from cockpit.model.view import QueueKind, QueueRow, QueuesShown
from cockpit.sched.rules.partitions import WHOLE_CLUSTER, nodes_of
from cockpit.sched.rules.quotas import NO_LEAF, Quotas
from cockpit.sched.rules.tres import CARDS, CPU, MEMORY, ONE, capacity, thousandths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cockpit.engine.access import Actor
    from cockpit.engine.machine import Machine

RESOURCES = (CPU, MEMORY, CARDS)
"""The resources of which rows of queues have amounts."""

Key = tuple[QueueKind, str]
"""A queue: its kind, and its path or name."""


def queues_shown(machine: Machine, actor: Actor) -> QueuesShown:
    """Return the rows of the quota tree, parents before their children, and then those of the partitions.

    Of the projects of a queue the actor sees those that they are in."""
    tree = machine.state.quota
    counts = _Counts(machine)
    rows = (*_of_tree(machine, counts, actor), *_of_partitions(machine, counts))
    return QueuesShown(rows, tree.name if tree else "", actor.admin)


def _of_tree(machine: Machine, counts: _Counts, actor: Actor) -> Iterator[QueueRow]:
    """Yield the rows of the quota tree, parents before their children."""
    state = machine.state
    named = named_projects(state)
    for place in places(state.quota.root) if state.quota is not None else ():
        node, key = place.node, (QueueKind.QUOTA, place.path)
        yield QueueRow(
            kind=QueueKind.QUOTA,
            path=place.path,
            name=queue_name(place.path),
            level=place.depth,
            since=state.queues_since.get(place.path, Millis(0)),
            waiting=counts.waiting[key],
            running=counts.running[key],
            used=dict(counts.used[key]),
            min={each: amount for each, amount in node.min.items() if each != JOBS},
            max={each: amount for each, amount in node.max.items() if each != JOBS},
            max_jobs=node.max[JOBS] // 1000 if JOBS in node.max else None,
            projects=tuple(each for each in node.namespaces if actor.admin or may_name(named, actor, actor.name, each)),
            bounded=counts.bounded,
        )


def _of_partitions(machine: Machine, counts: _Counts) -> Iterator[QueueRow]:
    """Yield the rows of the partitions; a cluster without any has one row, for all nodes."""
    state = machine.state
    nodes = tuple(state.nodes.values())
    for name in [each.name for each in state.cluster.partitions] or [WHOLE_CLUSTER]:
        key, has = (QueueKind.PARTITION, name), capacity(nodes_of(state.cluster, name, nodes))
        yield QueueRow(
            kind=QueueKind.PARTITION,
            path=name,
            name=name,
            level=0,
            # Partitions are in the configuration, which has no times.
            since=None,
            waiting=counts.waiting[key],
            running=counts.running[key],
            used=dict(counts.used[key]),
            # A partition guarantees nothing.
            min={},
            max={each: thousandths(has.get(each, 0)) for each in RESOURCES},
        )


class _Counts:
    """Counts the live jobs of each queue, and what they occupy.

    Jobs of the same project and partitions are counted together first, since there may be a hundred thousand jobs.
    """

    def __init__(self, machine: Machine) -> None:
        self.waiting, self.running = Counter[Key](), Counter[Key]()
        self.used: Mapping[Key, Counter[str]] = defaultdict(Counter)
        self._quotas = Quotas(machine.state.quota)
        self.bounded = self._quotas.resources
        # The queues of a project are looked up once for all its jobs.
        for (project, partitions), count in Counter(map(_waits_in, machine.queue.values())).items():
            for key in self._queues(project, partitions or (WHOLE_CLUSTER,)):
                self.waiting[key] += count
        for (project, partition), (running, amounts) in _running(machine).items():
            for key in self._queues(project, (partition,)):
                self.running[key] += running
                self.used[key].update(amounts)

    def _queues(self, project: str, partitions: Iterable[str]) -> list[Key]:
        """Return the queues of a project's jobs: its leaf of the tree, all nodes above it, and the partitions."""
        leaf = self._quotas.leaf(project)
        paths = self._quotas.shares[leaf].line if leaf != NO_LEAF else ()
        return [*((QueueKind.QUOTA, path) for path in paths), *((QueueKind.PARTITION, name) for name in partitions)]


_waits_in = attrgetter("project", "partitions")


def _running(machine: Machine) -> dict[tuple[str, str], tuple[int, Counter[str]]]:
    """Return by project and partition the number of running jobs, and what they and held containers occupy."""
    running_by_key: dict[tuple[str, str], tuple[int, Counter[str]]] = {}
    for job_id, placement in machine.occupied.items():
        job = machine.state.jobs[job_id]
        assert job.attempt is not None
        key = job.project, job.attempt.partition
        running, amounts = running_by_key.get(key) or (0, Counter[str]())
        for part in placement:
            amounts[CPU] += ONE * part.cpus
            amounts[MEMORY] += ONE * part.memory_mib
            amounts[CARDS] += part.card_milli
        # A held container occupies cards and is no running job.
        running_by_key[key] = running + (job.state in OCCUPYING), amounts
    return running_by_key
