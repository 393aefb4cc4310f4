"""Situations: nodes with what is on them, and jobs that wait. A seed and a number always make the same one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

CARD = "nvidia.com/gpu"
RDMA = "rdma/hca"
ZONE, HOST, MODEL = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "nvidia.com/gpu.product"
MODELS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S")
CLASSES: Mapping[str, int] = {"test-low": -10, "test-mid": 100, "test-high": 1000}
"""The priority classes of the cluster."""
NODES = 5
CPUS, GIB = 64, 512
Manifest = dict[str, Any]


class NodeState(NamedTuple):
    """How one of the nodes is set for a situation."""

    labels: dict[str, str]
    taints: list[dict[str, str]]
    cordoned: bool
    allocatable: dict[str, str]


class Situation(NamedTuple):
    """Nodes by their numbers, pods that occupy them, and what waits, the oldest first."""

    kind: str
    nodes: list[NodeState]
    running: list[tuple[int, Manifest, int | None]]
    """Each with its node's number and, in hours, its deadline; None: it has none."""
    waiting: list[Manifest]
    claims: list[tuple[str, str | None]]
    """Volume claims, each with the zone of its volume; None: it has no volume."""


def situation(kind: str, seed: int, number: int) -> Situation:
    """Return a situation of this kind."""
    random = Random(f"{seed}/{kind}/{number}")
    made = Situation(kind, [_node(random, each) for each in range(NODES)], [], [], [])
    _KINDS[kind](random, made)
    return made


def kinds() -> tuple[str, ...]:
    return tuple(_KINDS)


def _node(random: Random, number: int) -> NodeState:
    labels = {MODEL: random.choice(MODELS[:2]), ZONE: f"z{number % 3}", HOST: node_name(number)}
    cards = random.choice(("4", "8", "8"))
    resources = {"cpu": str(CPUS), "memory": f"{GIB}Gi", "pods": "30", CARD: cards, RDMA: "4"}
    return NodeState(labels, [], False, resources)


def node_name(number: int) -> str:
    return f"answer-{number}"


def a_pod(
    name: str, request: Mapping[str, str | int], labels: Mapping[str, str] | None = None, **spec: Any
) -> Manifest:
    container = {"name": "main", "image": "example/train:1", "resources": {"limits": dict(request)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, **spec},
    }


def a_job(name: str, count: int, pod: Manifest) -> Manifest:
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    spec = {"parallelism": count, "completions": count, "backoffLimit": 0, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _cards_of(node: NodeState) -> int:
    return int(node.allocatable[CARD])


def _fill(random: Random, made: Situation, *, ends: float = 0.7, least: int = 0, **spec: Any) -> None:
    """Let pods use cards of each node, so that at most `least` are left free on the fullest ones."""
    for number, node in enumerate(made.nodes):
        left = _cards_of(node) - random.randint(0, min(least, _cards_of(node)))
        while left:
            cards = random.randint(1, left)
            left -= cards
            _run(random, made, number, {CARD: cards, "cpu": "2"}, ends=ends, **spec)


def _run(
    random: Random,
    made: Situation,
    node: int,
    request: Mapping[str, str | int],
    *,
    ends: float = 0.7,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> None:
    place = len(made.running)
    # Hours apart, so that the order of the ends is plain.
    deadline = place + 1 if random.random() < ends else None
    made.running.append((node, a_pod(f"run-{place}", request, labels, **spec), deadline))


def _wait(made: Situation, request: Mapping[str, str | int], count: int = 1, **spec: Any) -> None:
    name = f"wait-{len(made.waiting)}"
    labels = spec.pop("labels", None)
    pod = a_pod(name, request, labels, **spec)
    made.waiting.append(pod if count == 1 else a_job(name, count, pod))


def _taint(key: str, value: str = "") -> dict[str, str]:
    return {"key": key, "value": value, "effect": "NoSchedule"}


def _cards_short(random: Random, made: Situation) -> None:
    _fill(random, made, least=5)
    _wait(made, {CARD: random.choice((4, 6, 8)), "cpu": "2"})


def _cpus_short(random: Random, made: Situation) -> None:
    for number in range(NODES):
        for _ in range(random.randint(1, 3)):
            _run(random, made, number, {"cpu": f"{random.randint(8, 20)}500m", CARD: 1})
    _wait(made, {"cpu": str(random.randint(45, 70)), CARD: random.choice((1, 2))})


def _memory_short(random: Random, made: Situation) -> None:
    for number in range(NODES):
        for _ in range(random.randint(1, 3)):
            _run(random, made, number, {"memory": f"{random.randint(60, 160)}Gi", "cpu": "1"})
    _wait(made, {"memory": f"{random.randint(300, 540)}Gi", "cpu": "1", CARD: 1})


def _tainted(random: Random, made: Situation) -> None:
    for number in random.sample(range(NODES), random.randint(2, NODES)):
        made.nodes[number].taints.append(random.choice((_taint("spot"), _taint("team", "nlp"), _taint("team", "cv"))))
    _fill(random, made, least=6)
    tolerated = [{"key": "team", "operator": "Equal", "value": "nlp", "effect": "NoSchedule"}]
    _wait(made, {CARD: random.choice((3, 5, 8))}, tolerations=random.choice((tolerated, [])))


def _selected(random: Random, made: Situation) -> None:
    _fill(random, made, least=6)
    wanted = random.choice(
        ({MODEL: MODELS[0]}, {MODEL: MODELS[2]}, {ZONE: "z1"}, {ZONE: "z9"}, {MODEL: MODELS[1], ZONE: "z0"})
    )
    _wait(made, {CARD: random.choice((2, 4, 6))}, nodeSelector=wanted)


def _affine(random: Random, made: Situation) -> None:
    _fill(random, made, least=6)
    expressions = random.choice(
        (
            [{"key": ZONE, "operator": "In", "values": ["z1", "z2"]}],
            [{"key": ZONE, "operator": "NotIn", "values": ["z0"]}],
            [{"key": "rack", "operator": "Exists"}],
            [{"key": MODEL, "operator": "In", "values": [MODELS[0]]}],
        )
    )
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    _wait(made, {CARD: random.choice((2, 4, 6))}, affinity=required)


def _cordoned(random: Random, made: Situation) -> None:
    for number in random.sample(range(NODES), random.randint(1, NODES)):
        made.nodes[number] = made.nodes[number]._replace(cordoned=True)
    _fill(random, made, least=5)
    _wait(made, {CARD: random.choice((3, 5))})


def _ports(random: Random, made: Situation) -> None:
    for number in range(NODES):
        if random.random() < 0.8:
            _run(random, made, number, {CARD: 1})
            made.running[-1][1]["spec"]["containers"][0]["ports"] = [{"containerPort": 29500, "hostPort": 29500}]
    _fill(random, made, least=3)
    _wait(made, {CARD: random.choice((1, 2))})
    made.waiting[-1]["spec"]["containers"][0]["ports"] = [{"containerPort": 29500, "hostPort": 29500}]


def _apart(random: Random, made: Situation) -> None:
    rule = {
        "topologyKey": random.choice((HOST, ZONE)),
        "labelSelector": {"matchLabels": {"app": "solo"}},
    }
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    for number in random.sample(range(NODES), random.randint(1, NODES)):
        # Whose rule it is makes no difference.
        own = {"affinity": required} if random.random() < 0.5 else {}
        _run(random, made, number, {CARD: 1}, labels={"app": "solo"}, **own)
    _fill(random, made, least=4)
    _wait(made, {CARD: random.choice((1, 2))}, labels={"app": "solo"}, affinity=required)


def _beside(random: Random, made: Situation) -> None:
    rule = {"topologyKey": random.choice((HOST, ZONE)), "labelSelector": {"matchLabels": {"app": "data"}}}
    required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    for number in random.sample(range(NODES), random.randint(0, 2)):
        _run(random, made, number, {CARD: 1}, labels={"app": "data"}, ends=0)
    _fill(random, made, least=4)
    _wait(made, {CARD: random.choice((1, 2, 4))}, affinity=required, labels=random.choice(({}, {"app": "data"})))


def _spread(random: Random, made: Situation) -> None:
    for _ in range(random.randint(1, 4)):
        _run(random, made, random.randrange(NODES), {CARD: 1}, labels={"app": "even"})
    _fill(random, made, least=3)
    constraint = {
        "topologyKey": random.choice((HOST, ZONE)),
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    _wait(made, {CARD: random.choice((1, 2))}, labels={"app": "even"}, topologySpreadConstraints=[constraint])


def _full_of_pods(random: Random, made: Situation) -> None:
    for number, node in enumerate(made.nodes):
        most = random.randint(1, 3)
        made.nodes[number] = node._replace(allocatable={**node.allocatable, "pods": str(most)})
        for _ in range(random.randint(max(1, most - 1), most)):
            _run(random, made, number, {"cpu": "1"})
    _wait(made, {"cpu": "1", CARD: random.choice((1, 8))})


def _priorities(random: Random, made: Situation) -> None:
    for number, node in enumerate(made.nodes):
        left = _cards_of(node)
        while left:
            cards = random.randint(1, left)
            left -= cards
            name = random.choice(("test-low", "test-mid", "test-mid", "test-high"))
            _run(random, made, number, {CARD: cards}, priorityClassName=name)
    for name in random.sample(("test-low", "test-mid", "test-mid"), random.randint(1, 2)):
        _wait(made, {CARD: random.choice((2, 4, 8))}, priorityClassName=name)


def _gang(random: Random, made: Situation) -> None:
    _fill(random, made, least=6)
    _wait(made, {CARD: random.choice((2, 3, 4)), "cpu": "4"}, count=random.randint(2, 5))


def _queue(random: Random, made: Situation) -> None:
    _fill(random, made, ends=1.0, least=2)
    for _ in range(random.randint(2, 3)):
        _wait(made, {CARD: random.choice((1, 3, 4, 6))}, priorityClassName=random.choice(("test-low", "test-low", "")))
    for each in made.waiting:
        if not each["spec"]["priorityClassName"]:
            del each["spec"]["priorityClassName"]


def _endless(random: Random, made: Situation) -> None:
    _fill(random, made, ends=0.2, least=2)
    _wait(made, {CARD: random.choice((4, 8))})


def _impossible(random: Random, made: Situation) -> None:
    _fill(random, made, least=8)
    _wait(made, random.choice(({CARD: 16}, {CARD: 1, "cpu": "200"}, {CARD: 1, "memory": "2Ti"}, {"amd.com/gpu": 1})))


def _other_resources(random: Random, made: Situation) -> None:
    for number in range(NODES):
        _run(random, made, number, {RDMA: random.randint(1, 4), CARD: random.randint(1, 4)})
    _wait(made, {RDMA: random.choice((2, 4)), CARD: random.choice((1, 4))})


def _volumes(random: Random, made: Situation) -> None:
    _fill(random, made, least=6)
    claim = random.choice(("bound", "bound", "unbound", "absent"))
    if claim != "absent":
        made.claims.append((claim, f"z{random.randrange(3)}" if claim == "bound" else None))
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    _wait(made, {CARD: random.choice((2, 4, 6))}, volumes=[volume])


_KINDS: Mapping[str, Callable[[Random, Situation], None]] = {
    "cards short": _cards_short,
    "CPUs short": _cpus_short,
    "memory short": _memory_short,
    "taints": _tainted,
    "node selector": _selected,
    "node affinity": _affine,
    "cordons": _cordoned,
    "host ports": _ports,
    "pod anti-affinity": _apart,
    "pod affinity": _beside,
    "topology spread": _spread,
    "number of pods": _full_of_pods,
    "priorities": _priorities,
    "several pods": _gang,
    "several jobs": _queue,
    "no time limits": _endless,
    "never fits": _impossible,
    "other resources": _other_resources,
    "volumes": _volumes,
}
