"""The quota tree's rules, slow and plainly right: everything is counted from who holds what. Shares no code with
`cockpit.sched` but the world that is looked at."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

from cockpit.model.ids import JobId
from cockpit.model.job import Job
from cockpit.model.quota import QuotaNode
from tests.sched.reference import Occupied, place
from tests.sched.world import World

RESOURCES = ("cpu", "mem", "gres/gpu")
BOUND = 1 << 62


def line_of(root: QuotaNode, project: str) -> list[QuotaNode]:
    """Return the nodes from the root to the project's leaf; none where there is no leaf."""
    if project in root.namespaces:
        return [root]
    below = next((line for child in root.children if (line := line_of(child, project))), [])
    return [root, *below] if below else []


def wanted(job: Job) -> dict[str, int]:
    (spec,) = job.spec.specs
    each = {"cpu": 1000 * spec.cpus, "mem": 1000 * spec.memory_mib, "gres/gpu": spec.card_milli}
    return {name: job.spec.nodes * amount for name, amount in each.items()}


def held(occupied: Occupied, job: JobId) -> dict[str, int]:
    parts = occupied[job]
    return {
        "cpu": 1000 * sum(part.cpus for part in parts),
        "mem": 1000 * sum(part.memory_mib for part in parts),
        "gres/gpu": sum(piece.milli for part in parts for piece in part.slices),
    }


class Naive:
    """The world with other occupants than it has, maybe."""

    def __init__(self, world: World, occupied: Occupied) -> None:
        self.root: QuotaNode = world.rules["quota"].root
        self.world, self.occupied = world, occupied

    def line(self, job: JobId) -> list[QuotaNode]:
        return line_of(self.root, self.world.jobs[job].project)

    def under(self, node: QuotaNode) -> list[JobId]:
        return [job for job in self.occupied if any(each is node for each in self.line(job))]

    def used(self, node: QuotaNode, resource: str) -> int:
        if resource == "jobs":
            return 1000 * len(self.under(node))
        return sum(held(self.occupied, job)[resource] for job in self.under(node))

    def passes_max(self) -> list[str]:
        """Return the names of nodes that hold more than their max."""
        return [
            node.name for node in every(self.root) for name, most in node.max.items() if self.used(node, name) > most
        ]

    def allows(self, job: Job) -> bool:
        """Whether no node would exceed its max with the job."""
        amounts = wanted(job) | {"jobs": 1000}
        return all(
            self.used(node, name) + amounts[name] <= most or not amounts[name]
            for node in line_of(self.root, job.project)
            for name, most in node.max.items()
        )

    def keepers(self, job: Job) -> list[QuotaNode]:
        """Return the nodes below the root within whose min the job would stay."""
        amounts = wanted(job)
        return [
            node
            for node in line_of(self.root, job.project)[1:]
            if all(
                not amounts[name] or self.used(node, name) + amounts[name] <= node.min.get(name, 0)
                for name in RESOURCES
            )
        ]

    def without(self, jobs: Collection[JobId]) -> Naive:
        return Naive(self.world, {job: parts for job, parts in self.occupied.items() if job not in jobs})

    def fits_now(self, job: Job) -> bool:
        return place(job.spec, list(self.world.nodes.values()), self.occupied) is not None

    def is_lawful(self, keeper: QuotaNode, victims: Collection[JobId], resources: Collection[str]) -> bool:
        """Whether each victim's nodes, up to the one in common with the keeper, borrow until the last of them goes."""
        common = path_to(self.root, keeper)
        for victim in victims:
            line = self.line(victim)
            if not line or any(node is keeper for node in line):
                return False
            below = [node for node in line if not any(node is each for each in common)]
            if not any(all(self.borrows(node, name, ()) for node in below) for name in self.held_of(victim, resources)):
                return False
            if not all(any(self.borrows(node, name, victims) for name in resources) for node in below):
                return False
        return True

    def held_of(self, victim: JobId, resources: Collection[str]) -> list[str]:
        return [name for name in resources if held(self.occupied, victim)[name]]

    def borrows(self, node: QuotaNode, resource: str, victims: Collection[JobId]) -> bool:
        """Also when all of the victims but the largest have gone."""
        inside = set(self.under(node))
        parts = [held(self.occupied, victim)[resource] for victim in victims if victim in inside]
        last = max(parts, default=0)
        beyond = self.used(node, resource) - node.min.get(resource, 0) - (sum(parts) - last)
        return beyond > 0 and (last > 0 or not victims)

    def fewest(self, job: Job, candidates: Collection[JobId]) -> int | None:
        """Return the smallest number of candidates that must be evicted so that the job may start; None: no number is
        enough."""
        short = self.short_of(job)
        for size in range(len(candidates) + 1):
            for some in combinations(candidates, size):
                rest = self.without(some)
                if (
                    rest.allows(job)
                    and rest.fits_now(job)
                    and any(self.is_lawful(keeper, some, short) for keeper in self.keepers(job)[-1:])
                ):
                    return size
        return None

    def short_of(self, job: Job) -> list[str]:
        """Return the resources that are missing, by quota or on the nodes."""
        amounts = wanted(job)
        lacking = {
            name
            for node in line_of(self.root, job.project)
            for name, most in node.max.items()
            if name != "jobs" and amounts[name] and self.used(node, name) + amounts[name] > most
        }
        return [name for name in RESOURCES if name in lacking | self._short_of_room(job)]

    def _short_of_room(self, job: Job) -> set[str]:
        if self.fits_now(job):
            return set()
        (spec,) = job.spec.specs
        found = set()
        for name in RESOURCES:
            alone = {"cpu": 0, "mem": 0, "gres/gpu": 0} | {name: wanted(job)[name] // job.spec.nodes}
            if not wanted(job)[name]:
                continue
            only = type(spec)(cpus=alone["cpu"] // 1000, memory_mib=alone["mem"] // 1000, card_milli=alone["gres/gpu"])
            if (
                place(
                    type(job.spec)(**{**fields(job.spec), "specs": (only,)}),
                    list(self.world.nodes.values()),
                    self.occupied,
                )
                is None
            ):
                found.add(name)
        return found or {name for name in RESOURCES if wanted(job)[name]}


def fields(struct) -> dict:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def every(node: QuotaNode) -> list[QuotaNode]:
    return [node, *(each for child in node.children for each in every(child))]


def path_to(root: QuotaNode, node: QuotaNode) -> list[QuotaNode]:
    if root is node:
        return [root]
    below = next((path for child in root.children if (path := path_to(child, node))), [])
    return [root, *below] if below else []
