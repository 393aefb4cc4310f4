"""Made-up situations of Kueue, drawn from a seed: queues with quotas, jobs that are submitted one after the other, and
jobs that end.

Each has queues, cohorts and flavors of its own, so that a manager decides about many of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.real.kubernetes.kueue import cluster_queue, cohort, gpu_job, local_queue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

FLAVORS = ("h100", "a100", "l40s")
"""The flavors, which have the label `model`; the last one is tainted."""
PRIORITIES = {"low": -10, "normal": 0, "high": 100}
SHAPES = ("alone", "cohort", "limits", "tree")


@dataclass
class MadeJob:
    name: str
    queue: str
    """The cluster queue, by way of the local queue of the same name."""
    cards: int
    """In each of its pods."""
    pods: int
    priority: str
    model: str = ""
    """The model of its nodes; empty: any."""
    tolerates: bool = False

    def manifest(self) -> dict[str, Any]:
        pod: dict[str, Any] = {}
        if self.model:
            pod["nodeSelector"] = {"model": self.model}
        if self.tolerates:
            pod["tolerations"] = [{"key": "spot", "operator": "Exists"}]
        return gpu_job(self.name, self.queue, self.cards, self.pods, self.priority, **pod)


@dataclass(eq=False)
class Situation:
    """The first jobs are there before; each wave that follows is submitted when the one before it is decided."""

    name: str
    shape: str
    queues: list[dict[str, Any]] = field(default_factory=list)
    cohorts: list[dict[str, Any]] = field(default_factory=list)
    waves: list[list[MadeJob]] = field(default_factory=list)

    def local_queues(self, namespace: str) -> Iterator[dict[str, Any]]:
        for queue in self.queues:
            yield local_queue(queue["metadata"]["name"], namespace, queue["metadata"]["name"])


def made_situation(random: Random, number: int) -> Situation:
    """Draw a situation. Most are full, since an empty queue decides nothing."""
    shape = SHAPES[number % len(SHAPES)]
    made = Situation(f"s{number:03d}", shape)
    count = 1 if shape == "alone" else random.choice((2, 3))
    names = [f"{made.name}-{letter}" for letter in "abc"[:count]]
    flavors = random.sample(FLAVORS, random.choice((1, 1, 2, 3)))
    for position, name in enumerate(names):
        limits = shape == "limits" or (shape == "tree" and random.random() < 0.3)
        quotas = {flavor: _quota(random, limits=limits) for flavor in flavors}
        spec: dict[str, Any] = {"queueingStrategy": random.choice(("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"))}
        spec |= _preemption(random, alone=shape == "alone")
        if random.random() < 0.3:
            when = ("MayStopSearch", "TryNextFlavor")
            spec["flavorFungibility"] = {"whenCanBorrow": random.choice(when), "whenCanPreempt": random.choice(when)}
        if shape != "alone":
            spec["cohortName"] = f"{made.name}-{'left' if shape == 'tree' and position else 'all'}"
        made.queues.append(cluster_queue(name, quotas, **spec))
    if shape == "tree":
        top = {flavors[0]: {"nominalQuota": random.choice((0, 2, 4))}}
        made.cohorts.append(cohort(f"{made.name}-all", top))
        own = random.choice((0, 2))
        lends = {"lendingLimit": random.choice((0, 2, 4))} if random.random() < 0.5 else {}
        below = {flavors[0]: {"nominalQuota": own, **lends}}
        made.cohorts.append(cohort(f"{made.name}-left", below, parentName=f"{made.name}-all"))
    jobs = 0
    for size in (random.randint(2, 4), random.randint(1, 2), random.randint(2, 3)):
        wave = []
        for _ in range(size):
            jobs += 1
            wave.append(_job(random, f"{made.name}-j{jobs}", random.choice(names), flavors))
        made.waves.append(wave)
    return made


def _quota(random: Random, *, limits: bool) -> dict[str, object]:
    nominal = random.choice((0, 4, 8, 8, 12))
    quota: dict[str, object] = {"nominalQuota": nominal}
    if limits and random.random() < 0.6:
        quota["borrowingLimit"] = random.choice((0, 2, 4, 8))
    if limits and random.random() < 0.5:
        quota["lendingLimit"] = min(nominal, random.choice((0, 2, 4)))
    return quota


def _preemption(random: Random, *, alone: bool) -> dict[str, Any]:
    within = random.choice(("Never", "Never", "LowerPriority", "LowerOrNewerEqualPriority"))
    rules: dict[str, Any] = {"withinClusterQueue": within}
    if not alone:
        rules["reclaimWithinCohort"] = random.choice(("Never", "Any", "LowerPriority"))
        if rules["reclaimWithinCohort"] != "Never" and random.random() < 0.3:
            rules["borrowWithinCohort"] = {"policy": "LowerPriority"}
    return {"preemption": rules}


def _job(random: Random, name: str, queue: str, flavors: list[str]) -> MadeJob:
    pods = random.choice((1, 1, 1, 2, 3))
    cards = random.choice((1, 2, 4, 4, 8)) if pods == 1 else random.choice((1, 2, 4))
    if random.random() < 0.06:
        pods, cards = 3, 8
    model = random.choice(FLAVORS) if random.random() < 0.12 else ""
    tolerates = random.random() < 0.8 or flavors == [FLAVORS[-1]]
    return MadeJob(name, queue, cards, pods, random.choice(tuple(PRIORITIES)), model, tolerates)
