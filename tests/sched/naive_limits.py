"""Limits of associations and QOS, each counted anew over all that runs. Shares no code with `cockpit.sched`."""

from __future__ import annotations

from cockpit.model.accounts import Association, Qos
from cockpit.model.cluster import Enforce
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Placement
from cockpit.model.spec import NodeSpec

MINUTE = 60


class NaiveLimits:
    """The limits of one world at one moment. `running` grows with what the pass starts."""

    def __init__(self, world) -> None:
        """`world`: or whatever has its now, nodes, queue, jobs, occupied, ends, rules and usage_at."""
        self.world = world
        self.now = world.now
        self.cluster, self.accounts = world.rules["cluster"], world.rules["accounts"]
        self.running: list[tuple[Job, str, Placement, float]] = []
        """Job, partition, what it holds, and for how many seconds still at most; a kept container is no job."""
        for job_id, placement in world.occupied.items():
            job = world.jobs[job_id]
            self.running.append((job, job.attempt.partition, placement, self.seconds_left(job_id)))

    def seconds_left(self, job_id) -> float:
        """Of its time limit, since it was last charged for."""
        job, end = self.world.jobs[job_id], self.world.ends.get(job_id)
        if end is None or job.state not in OCCUPYING:
            return 0.0
        return max(0, end - max(self.world.usage_at, job.attempt.placed_at)) / 1000

    def enforced(self) -> set[Enforce]:
        parts = set(self.cluster.enforce)
        if Enforce.SAFE in parts:
            parts.add(Enforce.LIMITS)
        if parts:
            parts.add(Enforce.ASSOCIATIONS)
        return parts

    def too_much(self, job: Job, name: str, spec: NodeSpec) -> bool:
        """Whether the job by itself breaks a limit on each job."""
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
        """Whether the job with these amounts would break a limit on what runs at once, or on usage."""
        own = self.bound_by(job, name)
        if own is None:
            return False
        return any(
            amounts.get(resource) and self.in_use(resource, who) + amounts[resource] > most + 1e-9
            for resource, most, who in self.running_limits(job, name, own)
        ) or any(self.spent(job, amounts, *budget) for budget in self.budgets(job, name, own))

    def exceeds_alone(self, job: Job, name: str, amounts: dict[str, float]) -> bool:
        """Whether the job would break a limit even if nothing else ran."""
        others, self.running = self.running, []
        try:
            return self.exceeds(job, name, amounts)
        finally:
            self.running = others

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
