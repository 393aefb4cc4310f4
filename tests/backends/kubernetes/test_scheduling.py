"""Which nodes can take a pod, why the others cannot, when it would be placed, and what would help."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.node_filters import obstacles
from cockpit.backends.kubernetes.mapping.node_groups import holders, look_at_nodes
from cockpit.backends.kubernetes.mapping.planning import ClusterLists, shown_spec
from cockpit.backends.kubernetes.mapping.pod_scheduling import Simulation, Start
from cockpit.backends.kubernetes.mapping.scheduler_view import SchedulerView, scheduler_view
from cockpit.backends.kubernetes.mapping.what_ifs import pod_changes
from cockpit.backends.kubernetes.objects.node import KubeNode
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.model.forecast import AwaitedJob, Change
from cockpit.model.ids import JobId, Millis
from cockpit.model.pod_reasons import NodesExcluded, Obstacle
from tests.backends.kubernetes.objects import GPU, a_node, a_pod, a_running_pod, an_ended_pod

NOW = Millis(1_772_356_200_000)
"""Five minutes after `a_running_pod` has started."""
ZONE = "topology.kubernetes.io/zone"


def a_request(cards: int = 8, cpu: str = "8", memory: str = "64Gi") -> dict[str, Any]:
    limits = {"cpu": cpu, "memory": memory, **({GPU: cards} if cards else {})}
    return {"containers": [{"name": "main", "image": "img:1", "resources": {"limits": limits}}]}


def waiting(name: str = "wants", cards: int = 8, **spec: Any) -> Pod:
    return a_pod(name, spec={**a_request(cards), **spec})


def running(name: str, node: str = "n1", cards: int = 4, **spec: Any) -> Pod:
    return a_running_pod(name, node, spec={**a_request(cards), **spec})


def view_of(nodes: list[KubeNode], *pods: Pod) -> SchedulerView:
    jobs = {JobId(number): KubeJob("Pod", pod.metadata, None, (pod,)) for number, pod in enumerate(pods, 1)}
    return scheduler_view(ClusterLists(NOW, {node.metadata.name: node for node in nodes}, jobs, ()))


def start_of(view: SchedulerView, job: int) -> Start | None:
    return Simulation(view.nodes, list(view.waiting.values()), view.ends, view.now).run(JobId(job))


def tainted(key: str, value: str = "", effect: str = "NoSchedule", name: str = "n1") -> KubeNode:
    return a_node(name, spec={"taints": [{"key": key, "value": value, "effect": effect}]})


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


LABELLED = a_node(metadata={"labels": {ZONE: "z1", "cards": "8"}})


@pytest.mark.req("KU-05")
@pytest.mark.parametrize(
    ("node", "spec", "found"),
    [
        (a_node(), {}, None),
        (a_node(spec={"unschedulable": True}), {}, Obstacle.CORDONED),
        (tainted("spot"), {}, Obstacle.TAINT),
        (tainted("spot", effect="PreferNoSchedule"), {}, None),
        (tainted("spot"), {"tolerations": [{"key": "spot", "operator": "Exists"}]}, None),
        (tainted("spot", "yes"), {"tolerations": [{"key": "spot", "value": "no"}]}, Obstacle.TAINT),
        (tainted("spot"), {"tolerations": [{"key": "spot", "effect": "NoExecute"}]}, Obstacle.TAINT),
        (tainted("spot"), {"tolerations": [{"operator": "Exists"}]}, None),
        (tainted("node.kubernetes.io/not-ready"), {}, Obstacle.NOT_READY),
        (LABELLED, {"nodeSelector": {ZONE: "z2"}}, Obstacle.SELECTOR),
        (LABELLED, expression(ZONE, "In", "z2", "z1"), None),
        (LABELLED, expression(ZONE, "NotIn", "z1"), Obstacle.AFFINITY),
        (LABELLED, expression("cards", "Gt", "4"), None),
        (LABELLED, expression("cards", "Lt", "8"), Obstacle.AFFINITY),
        (LABELLED, expression("rack", "DoesNotExist"), None),
        (LABELLED, expression("rack", "Exists"), Obstacle.AFFINITY),
        (a_node(), {"nodeName": ""}, None),
        (a_node(status={"allocatable": {"pods": "0"}}), {}, Obstacle.PODS),
        (a_node(status={"allocatable": {GPU: "4"}}), {}, Obstacle.RESOURCE),
    ],
)
def test_a_node_is_judged_as_the_schedulers_filters_do(
    node: KubeNode, spec: dict[str, Any], found: Obstacle | None
) -> None:
    base = {"status": {"allocatable": {"pods": "110"}}}
    with_pods = msgspec.convert(_merged(msgspec.to_builtins(node), base), KubeNode, strict=False)
    view = view_of([with_pods], waiting(**spec))
    (needs,) = view.waiting[JobId(1)].pods
    refused = obstacles(needs, view.nodes["n1"], view.nodes)
    assert [each.obstacle for each in refused] == ([found] if found is not None else [])


def _merged(node: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    own = node["status"]["allocatable"]
    return {**node, "status": {**node["status"], "allocatable": {**base["status"]["allocatable"], **own}}}


def with_pods(name: str = "n1", **changes: Any) -> KubeNode:
    node = a_node(name, **changes)
    return msgspec.convert(
        _merged(msgspec.to_builtins(node), {"status": {"allocatable": {"pods": "110"}}}), KubeNode, strict=False
    )


def apart(key: str = "kubernetes.io/hostname", app: str = "x") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def hosts(*names: str) -> list[KubeNode]:
    return [with_pods(name, metadata={"labels": {"kubernetes.io/hostname": name, ZONE: "z1"}}) for name in names]


def labelled(pod: Pod, **labels: str) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels))


@pytest.mark.req("KU-05")
def test_rules_about_other_pods_bind_both_sides_within_their_domain() -> None:
    there = labelled(running("there", cards=1), app="x")
    view = view_of(hosts("n1", "n2"), there, waiting(cards=1, **apart()))
    (needs,) = view.waiting[JobId(2)].pods
    found = {name: [each.obstacle for each in obstacles(needs, node, view.nodes)] for name, node in view.nodes.items()}
    assert found == {"n1": [Obstacle.ANTI_AFFINITY], "n2": []}
    # The rule of a pod that is there keeps others off, too, in the whole zone.
    keeps_off = running("there", cards=1, **apart(ZONE))
    view = view_of(hosts("n1", "n2"), keeps_off, labelled(waiting(cards=1), app="x"))
    (needs,) = view.waiting[JobId(2)].pods
    assert all(obstacles(needs, node, view.nodes) for node in view.nodes.values())


@pytest.mark.req("KU-05")
def test_pods_are_spread_no_more_unevenly_than_their_constraint_allows() -> None:
    constraint = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    there = labelled(running("there", cards=1), app="x")
    wants = labelled(waiting(cards=1, topologySpreadConstraints=[constraint]), app="x")
    view = view_of(hosts("n1", "n2"), there, wants)
    (needs,) = view.waiting[JobId(2)].pods
    found = {name: [each.obstacle for each in obstacles(needs, node, view.nodes)] for name, node in view.nodes.items()}
    assert found == {"n1": [Obstacle.SPREAD], "n2": []}


@pytest.mark.req("KU-05")
def test_a_host_port_is_used_once_on_a_node() -> None:
    port = {"ports": [{"hostPort": 29500}]}
    one = a_request(1)
    one["containers"][0] |= port
    view = view_of([with_pods()], a_running_pod("there", "n1", spec=one), a_pod("wants", spec=one))
    (needs,) = view.waiting[JobId(2)].pods
    assert [each.obstacle for each in obstacles(needs, view.nodes["n1"], view.nodes)] == [Obstacle.PORTS]


@pytest.mark.req("KU-05")
def test_nodes_are_grouped_by_what_keeps_the_pod_off_with_what_they_have_free() -> None:
    nodes = [with_pods(name) for name in ("n1", "n2", "n3")]
    nodes.append(with_pods("n4", spec={"taints": [{"key": "spot", "effect": "NoSchedule"}]}))
    used = [running("a", "n1", 4), running("b", "n2", 4), running("c", "n3", 8)]
    view = view_of(nodes, *used, waiting())
    (needs,) = view.waiting[JobId(4)].pods
    looked = look_at_nodes(needs, view.nodes)
    assert (looked.nodes, looked.fitting, looked.when_empty, looked.wanted) == (4, 0, 3, ((GPU, 8),))
    assert looked.excluded == (
        NodesExcluded(2, Obstacle.RESOURCE, GPU, 4, model="H100"),
        NodesExcluded(1, Obstacle.RESOURCE, GPU, 0, model="H100"),
        NodesExcluded(1, Obstacle.TAINT, "spot"),
    )
    assert holders(needs, view.nodes) == [JobId(3), JobId(1), JobId(2)]


@pytest.mark.req("KU-05", "SC-12")
def test_a_waiting_pod_starts_when_enough_jobs_with_a_deadline_have_ended() -> None:
    first, second = (running(name, cards=4, activeDeadlineSeconds=end) for name, end in (("a", 600), ("b", 1200)))
    view = view_of([with_pods()], first, second, waiting(cards=8))
    ends = {job: at for at, job in view.ends}
    assert ends == {JobId(1): NOW + 300_000, JobId(2): NOW + 900_000}
    assert start_of(view, 3) == Start(
        ends[JobId(2)], (AwaitedJob(JobId(1), ends[JobId(1)]), AwaitedJob(JobId(2), ends[JobId(2)]))
    )
    # Without a deadline no end is known, and so no start.
    assert start_of(view_of([with_pods()], running("a", cards=4), waiting(cards=8)), 2) is None


@pytest.mark.req("KU-05", "SC-12")
def test_a_job_without_a_deadline_runs_as_long_as_those_of_its_namespace_did() -> None:
    # An hour each; the one that runs has run for five minutes.
    past = [an_ended_pod(f"old-{number}", spec=a_request(4)) for number in range(2)]
    view = view_of([with_pods()], *past, running("a", cards=4), waiting(cards=8))
    assert view.ends == ((Millis(NOW + 55 * 60_000), JobId(3)),)


@pytest.mark.req("KU-05", "SC-12")
def test_pods_are_tried_by_priority_and_age_and_nothing_is_kept_free() -> None:
    later = {"metadata": {"creationTimestamp": "2026-03-01T10:00:00Z"}}
    large = waiting("large", 8)
    small = a_pod("small", spec=a_request(4), **later)
    view = view_of([with_pods()], running("a", cards=4, activeDeadlineSeconds=600), large, small)
    # The younger one fits at once, and delays the older one for as long as it runs.
    assert start_of(view, 3) == Start(NOW)
    assert start_of(view, 2) is None
    urgent = a_pod("urgent", spec={**a_request(8), "priority": 10}, **later)
    view = view_of([with_pods()], running("a", cards=4, activeDeadlineSeconds=600), waiting("older", 8), urgent)
    assert start_of(view, 2) is None
    assert start_of(view, 3) == Start(NOW, evicts=(JobId(1),))


@pytest.mark.req("KU-05", "SC-12")
def test_a_job_that_its_queue_admits_later_finds_the_nodes_as_they_are_then() -> None:
    first = running("a", cards=4, activeDeadlineSeconds=600)
    view = view_of([with_pods()], first, waiting("now", 4))
    (plain,) = view.waiting.values()
    ends = view.ends[0][0]
    # Of equal pods the one that came earlier has the place, although it is the other's class.
    late = plain._replace(job=JobId(7), created_at=Millis(NOW + 60_000), run_ms=60_000)
    large = late._replace(
        job=JobId(8), created_at=Millis(NOW + 1000), pods=view_of([], waiting("l", 8)).waiting[JobId(1)].pods
    )
    simulation = Simulation(view.nodes, [plain._replace(run_ms=30_000)], view.ends, NOW, [late, large])
    simulation.run()
    assert simulation.starts[JobId(2)] == Start(NOW)
    # The waiting pod's job has ended before it comes; the large one finds the node free only after both.
    assert simulation.starts[JobId(7)] == Start(Millis(NOW + 60_000), (AwaitedJob(JobId(2), Millis(NOW + 30_000)),))
    assert simulation.starts[JobId(8)].at == ends
    # Without any end to come a job that arrives is placed, too.
    simulation = Simulation(view_of([with_pods()]).nodes, [], (), NOW, [late])
    assert simulation.run(JobId(7)) == Start(late.created_at)


@pytest.mark.req("KU-05")
def test_the_fewest_pods_of_the_lowest_priority_are_evicted() -> None:
    nodes = [with_pods("n1"), with_pods("n2")]
    low, mid = running("low", "n1", 8, priority=1), running("mid", "n2", 8, priority=5)
    view = view_of(nodes, low, mid, waiting(cards=4, priority=10))
    assert start_of(view, 3) == Start(NOW, evicts=(JobId(1),))
    never = view_of(nodes, low, mid, waiting(cards=4, priority=10, preemptionPolicy="Never"))
    assert start_of(never, 3) is None


@pytest.mark.req("KU-05")
def test_of_pods_of_one_priority_those_that_have_run_longest_stay() -> None:
    younger = {"status": {"startTime": "2026-03-01T09:06:00Z"}}
    young = a_running_pod("young", "n1", spec=a_request(4), **younger)
    view = view_of([with_pods()], young, running("old", "n1", 4), waiting(cards=4, priority=10))
    assert start_of(view, 3) == Start(NOW, evicts=(JobId(1),))


def changes_of(view: SchedulerView, job: int, pod: Pod, **classes: int) -> dict[tuple[Change, str], Start | None]:
    """Return the start with each change of the job."""
    waits = view.waiting[JobId(job)]
    spec = shown_spec(KubeJob("Pod", pod.metadata, None, (pod,)))
    found = {}
    for each in pod_changes(waits.pods, spec, view.nodes, classes, {}):
        changed = waits._replace(pods=tuple(map(each.changed, waits.pods)))
        simulation = Simulation(view.nodes, [changed], view.ends, view.now)
        found[each.change, each.after] = simulation.run(JobId(job))
    return found


@pytest.mark.req("KU-05", "SC-13")
def test_what_the_obstacles_name_is_tried_and_what_helps_is_found() -> None:
    spot = with_pods("n2", spec={"taints": [{"key": "spot", "effect": "NoSchedule"}]})
    pod = waiting(cards=8, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    other = with_pods("n3", metadata={"labels": {"nvidia.com/gpu.product": "NVIDIA-L40S"}})
    view = view_of([with_pods(), spot, other], running("a", cards=5), pod)
    found = changes_of(view, 2, pod, high=10)
    now = Start(NOW)
    assert found[Change.CARDS, "3"] == now
    assert found[Change.CARDS, "4"] is None
    assert found[Change.TOLERATION, "spot"] == now
    assert found[Change.LABEL, "nvidia.com/gpu.product=NVIDIA-L40S"] == now
    assert found[Change.LABEL, ""] == now
    assert found[Change.PRIORITY_CLASS, "high"] == Start(NOW, evicts=(JobId(1),))
