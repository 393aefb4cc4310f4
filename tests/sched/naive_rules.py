"""A cluster's rules, each in a few plain words and by counting everything anew. Shares no code with `cockpit.sched`.

What a cluster means here: order, gates, partitions and reservations. Where jobs go is `naive_plan`'s.
"""

from __future__ import annotations

from cockpit.model.accounts import Association, Qos
from cockpit.model.cluster import Enforce, PartitionState, PriorityKind
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Placement
from cockpit.model.spec import NodeSpec, PriorityWord

URGENCY = (PriorityWord.VERY_URGENT, PriorityWord.URGENT, PriorityWord.NORMAL)
MINUTE = 60


class NaiveRules:
    """Of one world at one moment. `running` grows with what the pass starts."""

    def __init__(self, world, fairshare: dict[str, float]) -> None:
        """`fairshare`: factors by association."""
        self.world = world
        self.now = world.now
        self.cluster, self.accounts = world.rules["cluster"], world.rules["accounts"]
        self.reservations = [each for each in world.rules["reservations"].values() if each.end_at > world.now]
        self.fairshare = fairshare
        self.running: list[tuple[Job, str, Placement, float]] = []
        """Job, partition, what it holds, and for how many seconds still at most; a kept container is no job."""
        for job_id, placement in world.occupied.items():
            job = world.jobs[job_id]
            self.running.append((job, job.attempt.partition, placement, self.seconds_left(job_id)))

    def seconds_left(self, job_id) -> float:
        """Of its limit, since it began: nothing was charged yet."""
        job, end = self.world.jobs[job_id], self.world.ends.get(job_id)
        return (end - job.attempt.placed_at) / 1000 if end is not None else 0.0

    # order

    def entries(self) -> list[tuple[Job, str]]:
        """Every queued job in each of its partitions, best first."""
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
        most = max((each.priority for each in self.accounts.associations.values()), default=0)
        total += (own.priority / most if own and most else 0.0) * weights.assoc
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

    def age(self, job: Job) -> float:
        """To the last pass over usage, which was at the beginning of time."""
        if job.accrues_from is None:
            return 0.0
        return min(max(0, 0 - job.accrues_from) / (1000 * self.cluster.priority.max_age_seconds), 1.0)

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
        """What the job itself waits for."""
        if job.held_by:
            return "held"
        if job.waits_for:
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
        """What the rules alone say, whatever runs."""
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
        return ""

    def partition_refuses(self, job: Job, name: str) -> bool:
        there, spec = self.cluster.partition(name), job.spec
        return there is None or (
            there.state in (PartitionState.DOWN, PartitionState.INACTIVE)
            or bool(there.allow_accounts and job.account not in there.allow_accounts)
            or bool(not there.allow_qos and job.qos in there.deny_qos)
            or (there.max_time_seconds is not None and spec.time_limit_seconds > there.max_time_seconds)
            or spec.nodes < there.min_nodes
            or (there.max_nodes is not None and spec.nodes > there.max_nodes)
        )

    def enforced(self) -> set[Enforce]:
        parts = set(self.cluster.enforce)
        if Enforce.SAFE in parts:
            parts.add(Enforce.LIMITS)
        if parts:
            parts.add(Enforce.ASSOCIATIONS)
        return parts

    def allowed_qos(self, own: Association) -> tuple[str, ...]:
        return next((each.qos for each in self.line(own) if each.qos), ("normal",))

    def array_full(self, job: Job) -> bool:
        if job.array is None or not job.array.at_once:
            return False
        tasks = [each for each, *_ in self.running if each.array and each.array.array == job.array.array]
        return sum(each.state in OCCUPYING or each.id not in self.world.occupied for each in tasks) >= job.array.at_once

    # limits

    def too_much(self, job: Job, name: str, spec: NodeSpec) -> bool:
        """The job by itself is beyond a limit on each job."""
        own = self.bound_by(job, name)
        if own is None:
            return False
        asked = amounts_asked(spec, job.spec.nodes)
        seen = set()
        for limits in (*(qos.limits for qos in self.qos_of(job, name)), *(each.limits for each in self.line(own))):
            if limits.max_wall_seconds is not None and "wall" not in seen:
                seen.add("wall")
                if job.spec.time_limit_seconds > limits.max_wall_seconds:
                    return True
            for resource, most in limits.max_tres_per_job.items():
                if resource not in seen and asked.get(resource, 0.0) > most:
                    return True
                seen.add(resource)
        return False

    def exceeds(self, job: Job, name: str, amounts: dict[str, float]) -> bool:
        """Holding these amounts, the job would be beyond a limit on what runs at once, or on usage."""
        own = self.bound_by(job, name)
        if own is None:
            return False
        return any(
            amounts.get(resource) and self.in_use(resource, who) + amounts[resource] > most + 1e-9
            for resource, most, who in self.running_limits(job, name, own)
        ) or any(self.spent(job, amounts, *budget) for budget in self.budgets(job, name, own))

    def running_limits(self, job: Job, name: str, own: Association):
        """(resource, most, whose jobs count); of the same limit a QOS goes before associations."""
        user, account = job.submitter.name, job.account
        seen = set()
        for qos in self.qos_of(job, name):
            found = [("grp", "jobs", qos.limits.grp_jobs, {})]
            found += [("grp", resource, most, {}) for resource, most in qos.limits.grp_tres.items()]
            found += [("account", "jobs", qos.max_jobs_per_account, {"account": account})]
            found += [("user", "jobs", qos.limits.max_jobs, {"user": user})]
            found += [("user", resource, most, {"user": user}) for resource, most in qos.max_tres_per_user.items()]
            for kind, resource, most, who in found:
                if most is not None and (kind, resource) not in seen:
                    seen.add((kind, resource))
                    yield resource, most, {"qos": qos.name, **who}
        most = next((each.limits.max_jobs for each in self.line(own) if each.limits.max_jobs is not None), None)
        if most is not None and ("user", "jobs") not in seen:
            yield "jobs", most, {"line": own.key}
        for each in self.line(own):
            if each.limits.grp_jobs is not None and ("grp", "jobs") not in seen:
                yield "jobs", each.limits.grp_jobs, {"line": each.key}
            for resource, allowed in each.limits.grp_tres.items():
                if ("grp", resource) not in seen:
                    yield resource, allowed, {"line": each.key}

    def in_use(self, resource: str, who: dict[str, str]) -> float:
        used = 0.0
        for job, name, placement, _ in self.running:
            if self.counts(job, name, who):
                alive = job.state in OCCUPYING or job.id not in self.world.occupied
                used += alive if resource == "jobs" else amounts_held(placement).get(resource, 0.0)
        return used

    def counts(self, job: Job, name: str, who: dict[str, str]) -> bool:
        own = self.bound_by(job, name)
        return own is not None and (
            ("qos" not in who or who["qos"] in [qos.name for qos in self.qos_of(job, name)])
            and who.get("user") in (None, job.submitter.name)
            and who.get("account") in (None, job.account)
            and ("line" not in who or who["line"] in [each.key for each in self.line(own)])
        )

    def budgets(self, job: Job, name: str, own: Association):
        """(resource, minutes, whose usage)."""
        seen = set()
        for qos in self.qos_of(job, name):
            for resource, most in qos.limits.grp_tres_minutes.items():
                if resource not in seen:
                    seen.add(resource)
                    yield resource, most, {"qos": qos.name}
        for each in self.line(own):
            for resource, most in each.limits.grp_tres_minutes.items():
                if resource not in seen:
                    yield resource, most, {"line": each.key}

    def spent(self, job: Job, amounts: dict[str, float], resource: str, most: float, who: dict[str, str]) -> bool:
        table = self.world.rules["qos_usage" if "qos" in who else "usage"]
        usage = table.get(who.get("qos") or who.get("line"))
        used = usage.tres_seconds.get(resource, 0.0) / MINUTE if usage else 0.0
        wanted = 0.0
        if Enforce.SAFE in self.enforced():
            wanted = amounts.get(resource, 0.0) * job.spec.time_limit_seconds / MINUTE
            for other, name, placement, seconds in self.running:
                if self.counts(other, name, who):
                    used += amounts_held(placement).get(resource, 0.0) * seconds / MINUTE
        return used >= most or used + wanted > most

    def bound_by(self, job: Job, name: str) -> Association | None:
        return self.association(job, name) if Enforce.LIMITS in self.enforced() else None

    def association(self, job: Job, name: str) -> Association | None:
        known = self.accounts.associations
        return known.get(f"{job.account}/{job.submitter.name}/{name}") or known.get(
            f"{job.account}/{job.submitter.name}"
        )

    def line(self, own: Association) -> list[Association]:
        """The association, its account, the account above, and so on."""
        found, above = [own], own.account if own.user else own.parent
        while above:
            found.append(self.accounts.associations[f"{above}/"])
            above = found[-1].parent
        return found

    def qos_of(self, job: Job, name: str) -> list[Qos]:
        """The partition's before the job's, each once."""
        there = self.cluster.partition(name)
        names = dict.fromkeys([there.qos if there else "", job.qos])
        return [self.accounts.qos[each] for each in names if each in self.accounts.qos]

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


def amounts_asked(spec: NodeSpec, nodes: int) -> dict[str, float]:
    each = {"jobs": 1 / nodes, "cpu": spec.cpus, "mem": spec.memory_mib, "node": 1, "gres/gpu": spec.card_milli / 1000}
    return {name: nodes * amount for name, amount in each.items()}


def amounts_held(placement: Placement) -> dict[str, float]:
    return {
        "jobs": 1,
        "cpu": sum(part.cpus for part in placement),
        "mem": sum(part.memory_mib for part in placement),
        "node": len(placement),
        "gres/gpu": sum(piece.milli for part in placement for piece in part.slices) / 1000,
    }


def capacity(node, resource: str) -> float:
    return {"cpu": node.cpus, "mem": node.memory_mib, "node": 1, "gres/gpu": len(node.cards)}[resource]
