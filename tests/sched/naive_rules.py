"""A cluster's rules, each in a few plain words and by counting everything anew. Shares no code with `cockpit.sched`.

What a cluster means here: order, gates, partitions and reservations. Where jobs go is `naive_plan`'s.
"""

from __future__ import annotations

from cockpit.model.accounts import Association
from cockpit.model.cluster import Enforce, PartitionState, PriorityKind
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.spec import PriorityWord
from tests.sched.naive_limits import NaiveLimits, amounts_asked, capacity

URGENCY = (PriorityWord.VERY_URGENT, PriorityWord.URGENT, PriorityWord.NORMAL)


class NaiveRules(NaiveLimits):
    """The rules of one world at one moment."""

    def __init__(self, world, fairshare: dict[str, float]) -> None:
        """`fairshare`: factors by association."""
        super().__init__(world)
        self.fairshare = fairshare
        self.reservations = [each for each in world.rules["reservations"].values() if each.end_at > world.now]

    # order

    def entries(self) -> list[tuple[Job, str]]:
        """Return every queued job in each of its partitions, best first."""
        listed = [(job, name) for job in self.world.queue for name in job.partitions or ("",)]
        return sorted(listed, key=lambda entry: self.rank(*entry))

    def rank(self, job: Job, name: str) -> tuple:
        partition = self.cluster.partition(name)
        tier = partition.priority_tier if partition else 1
        if self.cluster.priority.kind is PriorityKind.BASIC:
            return (-tier,)
        by_word = not self.cluster.priority.weights.qos
        urgency = URGENCY.index(job.spec.priority) if by_word else 0
        return -tier, -self.priority(job, name), urgency, job.submitted_at, job.id

    def priority(self, job: Job, name: str) -> int:
        if job.held_by:
            return 0
        if job.direct_priority is not None:
            return job.direct_priority
        weights = self.cluster.priority.weights
        total = self.age(job) * weights.age
        own = self.association(job, name)
        most = max((self.inherited_priority(each) for each in self.accounts.associations.values()), default=0)
        total += (self.inherited_priority(own) / most if own and most else 0.0) * weights.assoc
        total += (self.fairshare.get(own.key, 0.0) if own else 0.0) * weights.fairshare
        total += self.size(job) * weights.job_size
        factors = {each.name: each.priority_job_factor for each in self.cluster.partitions} or {"": 1}
        total += factors.get(name, 0) / max(1, *factors.values()) * weights.partition
        qos = {each.name: each.priority for each in self.accounts.qos.values()}
        total += (qos.get(job.qos, 0) / max(qos.values()) if max(qos.values()) else 0.0) * weights.qos
        asked = amounts_asked(job.spec.specs[0], job.spec.nodes)
        resources = 0.0
        for resource, weight in weights.tres.items():
            there = sum(capacity(node, resource) for node in self.nodes_of(name))
            resources += (min(1.0, asked.get(resource, 0.0) / there) if there else 0.0) * weight
        return int(min(max(total + resources + job.site_factor - job.spec.nice, 1.0), 2**32 - 1))

    def inherited_priority(self, own: Association) -> int:
        return next((each.priority for each in self.line(own) if each.priority is not None), 0)

    def age(self, job: Job) -> float:
        """To the last pass over usage."""
        if job.accrues_from is None:
            return 0.0
        return min(max(0, self.world.usage_at - job.accrues_from) / (1000 * self.cluster.priority.max_age_seconds), 1.0)

    def size(self, job: Job) -> float:
        workers = self.nodes_of("")
        nodes, cpus = len(workers), sum(node.cpus for node in workers)
        if not nodes:
            return 0.0
        has_nodes, has_cpus = job.spec.nodes, job.spec.nodes * job.spec.specs[0].cpus
        if self.cluster.priority.favor_small:
            has_nodes, has_cpus = nodes - has_nodes, cpus - has_cpus
        return min(1.0, max(0.0, (has_nodes / nodes + has_cpus / cpus) / 2))

    # gates

    def own(self, job: Job) -> str:
        """Return the condition of its own that the job waits for."""
        if job.held_by:
            return "held"
        if job.waits_for or job.never:
            return "waits"
        if job.spec.begin_at and job.spec.begin_at > self.now:
            return "begins"
        return "" if self.may_be_inside(job, self.now) else "reservation"

    def may_be_inside(self, job: Job, moment: int) -> bool:
        """Whether the reservation it names, if it does, lets it run from this moment on."""
        name = job.spec.reservation
        kept = next((each for each in self.reservations if each.name == name), None)
        if not name:
            return True
        if kept is None or kept.maintenance or not (kept.users or kept.accounts):
            return False
        invited = not kept.users or job.submitter.name in kept.users
        invited = invited and (not kept.accounts or job.account in kept.accounts)
        return invited and kept.start_at <= moment and moment + 1000 * job.spec.time_limit_seconds <= kept.end_at

    def refused(self, job: Job, name: str) -> str:
        """Return the reason that the rules alone give, whatever runs."""
        if name and self.partition_refuses(job, name):
            return "partition"
        parts = self.enforced()
        if Enforce.ASSOCIATIONS in parts:
            own = self.association(job, name)
            if own is None:
                return "association"
            if Enforce.QOS in parts and job.qos not in self.allowed_qos(own):
                return "qos"
        if all(self.too_much(job, name, spec) for spec in job.spec.specs):
            return "limit"
        there = self.cluster.partition(name)
        is_down = there is not None and there.state in (PartitionState.DOWN, PartitionState.INACTIVE)
        return "partition" if is_down else ""  # that passes

    def partition_refuses(self, job: Job, name: str) -> bool:
        there, spec = self.cluster.partition(name), job.spec
        return there is None or (
            bool(there.allow_accounts and job.account not in there.allow_accounts)
            or bool(not there.allow_qos and job.qos in there.deny_qos)
            or (there.max_time_seconds is not None and spec.time_limit_seconds > there.max_time_seconds)
            or spec.nodes < there.min_nodes
            or (there.max_nodes is not None and spec.nodes > there.max_nodes)
        )

    def allowed_qos(self, own: Association) -> tuple[str, ...]:
        return next((each.qos for each in self.line(own) if each.qos), ("normal",))

    def array_full(self, job: Job) -> bool:
        if job.array is None or not job.array.at_once:
            return False
        tasks = [each for each, *_ in self.running if each.array and each.array.array == job.array.array]
        return sum(each.state in OCCUPYING or each.id not in self.world.occupied for each in tasks) >= job.array.at_once

    # nodes

    def nodes_of(self, name: str) -> list:
        """The partition's."""
        there = self.cluster.partition(name)
        workers = [
            n for n in self.world.nodes.values() if not self.cluster.login_pool or n.pool != self.cluster.login_pool
        ]
        if there is None or not (there.pools or there.nodes):
            return workers
        return [node for node in workers if node.pool in there.pools or node.name in there.nodes]

    def open_nodes(self, job: Job, name: str, moment: int) -> list:
        """Of the partition's nodes those that the job may be on from this moment to its time limit."""
        if not self.may_be_inside(job, moment):
            return []
        end = moment + 1000 * job.spec.time_limit_seconds
        closed = [each for each in self.reservations if each.name != job.spec.reservation]
        closed = [each for each in closed if each.start_at < end and each.end_at > moment]
        return [n for n in self.own_nodes(job, name) if not any(n.name in each.nodes for each in closed)]

    def own_nodes(self, job: Job, name: str) -> list:
        """Of the partition's nodes those of the reservation that the job names, if it does."""
        inside = [each.nodes for each in self.reservations if each.name == job.spec.reservation]
        return [node for node in self.nodes_of(name) if all(node.name in nodes for nodes in inside)]
