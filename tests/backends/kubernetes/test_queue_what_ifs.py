"""Which changes would have a job admitted now that waits in a queue: over the tests' own API server."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.model.forecast import Change, NoBound, Outlook
from tests.backends.kubernetes.kube_queue_objects import TREES, a_tree, queue_job, run_job, serve_kube_queue
from tests.backends.kubernetes.objects import GPU, merged
from tests.backends.kubernetes.test_explaining import NODES, PODS, a_node, running
from tests.backends.kubernetes.test_kueue_predicted import JOBS, KUEUE, a_queue, add_job, serve, words
from tests.doubles.kubernetes_api import FakeApi

pytestmark = pytest.mark.req("KU-04", "KU-05", "SC-12")
CLASSES = "/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses"


async def explained(backend: KubernetesBackend, name: str) -> Outlook:
    (row,) = [row for row in await backend.jobs() if row.name == name]
    return await backend.explain(row.id)


def found(outlook: Outlook) -> dict[tuple[Change, str], tuple[bool, int]]:
    return {(each.change, each.after): (each.forecast.now, each.evicts) for each in outlook.what_ifs}


def add_class(server: FakeApi, name: str, value: int) -> None:
    kinds = server.kinds[KUEUE]
    server.kinds[KUEUE] = tuple(dict.fromkeys((*kinds, "workloadpriorityclasses")))
    server.create(CLASSES, {"metadata": {"name": name}, "value": value})


def many_nodes(server: FakeApi, count: int = 4) -> None:
    for number in range(count):
        server.create(NODES, a_node(f"n{number}"))


async def test_fewer_cards_are_the_most_that_the_quota_has_left(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue(cards=12))
    many_nodes(server)
    add_job(server, "old", 7, admitted=True)
    add_job(server, "big", 8)
    outlook = await explained(backend, "big")
    assert found(outlook) == {(Change.CARDS, "5"): (True, 0)}
    (what_if,) = outlook.what_ifs
    assert (what_if.before, what_if.spec.specs[0].card_milli) == ("8", 5000)
    assert "with 5 cards instead of 8: now, by cockpit's own plan" in words(outlook)


async def test_what_the_quota_admits_has_to_find_nodes(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue(cards=12))
    server.create(NODES, a_node("n1", status={"allocatable": {GPU: "4"}}))
    add_job(server, "old", 7, admitted=True)
    add_job(server, "big", 8)
    assert (await explained(backend, "big")).what_ifs == ()


async def test_without_nodes_that_the_user_may_see_the_quota_alone_decides(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    serve(server, a_queue(cards=12))
    add_job(server, "old", 7, admitted=True)
    add_job(server, "big", 8)
    (what_if,) = (await explained(backend, "big")).what_ifs
    assert (what_if.after, what_if.forecast.now, what_if.forecast.no_bound) == ("5", True, NoBound.NODES_UNSEEN)


async def test_the_lowest_class_with_which_others_are_preempted(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue(cards=8, preemption={"withinClusterQueue": "LowerPriority"}))
    many_nodes(server)
    for name, value in (("low", -5), ("usual", 10), ("high", 100), ("top", 1000)):
        add_class(server, name, value)
    add_job(server, "old", 8, admitted=True, priority=10)
    owner = {"uid": server.object(f"{JOBS}/old")["metadata"]["uid"], "kind": "Job", "name": "old", "controller": True}
    server.create(PODS, merged(running("old-0", "n0", 8), {"metadata": {"ownerReferences": [owner]}}))
    add_job(server, "urgent", 8)
    outlook = await explained(backend, "urgent")
    assert found(outlook) == {(Change.PRIORITY_CLASS, "high"): (True, 1)}
    assert outlook.what_ifs[0].spec.qos == "high"
    assert "with the priority class high instead of 0, which evicts about 1 pod: now" in words(outlook)


async def test_a_higher_class_passes_the_head_of_a_strict_queue(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue(cards=8, queueingStrategy="StrictFIFO"))
    many_nodes(server)
    add_class(server, "high", 100)
    add_job(server, "old", 4, admitted=True)
    add_job(server, "head", 8, priority=10)
    add_job(server, "small", 4)
    assert found(await explained(backend, "small")) == {(Change.PRIORITY_CLASS, "high"): (True, 0)}
    # The head itself is not helped by a class: it would need fewer cards, behind nobody, as the other fits, too.
    assert (Change.PRIORITY_CLASS, "high") not in found(await explained(backend, "head"))


async def test_another_queue_of_the_namespace(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue(cards=8), a_queue("spare", cards=8), a_queue("tiny", cards=4))
    many_nodes(server)
    add_job(server, "old", 8, admitted=True)
    add_job(server, "big", 8)
    outlook = await explained(backend, "big")
    assert found(outlook) == {(Change.QUEUE, "spare"): (True, 0)}
    assert outlook.what_ifs[0].spec.partitions == ("spare",)
    assert "in queue spare instead of gpu: now" in words(outlook)


@pytest.mark.parametrize("closed", [{"stopPolicy": "Hold"}, {"namespaceSelector": {"matchLabels": {"team": "b"}}}])
async def test_a_queue_that_does_not_look_at_the_job_is_no_help(
    backend: KubernetesBackend, server: FakeApi, closed: dict[str, Any]
) -> None:
    serve(server, a_queue(cards=8), a_queue("spare", cards=8, **closed))
    many_nodes(server)
    add_job(server, "old", 8, admitted=True)
    add_job(server, "big", 8)
    assert (await explained(backend, "big")).what_ifs == ()


async def test_a_smaller_job_is_a_new_one_behind_those_that_wait(backend: KubernetesBackend, server: FakeApi) -> None:
    """A strict queue has a first job that does not fit: nothing behind it is admitted, however small."""
    serve(server, a_queue(cards=12, queueingStrategy="StrictFIFO"))
    many_nodes(server)
    add_job(server, "old", 7, admitted=True)
    add_job(server, "first", 8, priority=1)
    add_job(server, "second", 8)
    assert (await explained(backend, "second")).what_ifs == ()


async def test_a_queue_with_admission_checks_admits_nothing_at_once(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    serve(server, a_queue(cards=12, admissionChecks=["prov"]))
    many_nodes(server)
    add_job(server, "old", 7, admitted=True)
    add_job(server, "big", 8)
    assert (await explained(backend, "big")).what_ifs == ()


async def test_fewer_pods_where_the_quota_has_no_place_for_all(backend: KubernetesBackend, server: FakeApi) -> None:
    serve(server, a_queue(cards=16))
    many_nodes(server)
    add_job(server, "old", 8, admitted=True)
    add_job(server, "wide", 4)
    workload = f"{KUEUE}/namespaces/team-a/workloads/job-wide"
    sets = server.object(workload)["spec"]["podSets"]
    server.change(workload, {"spec": {"podSets": [{**sets[0], "count": 3}]}})
    outlook = await explained(backend, "wide")
    assert found(outlook) == {(Change.NODES, "2"): (True, 0), (Change.CARDS, "2"): (True, 0)}


@pytest.fixture
def with_tree(backend: KubernetesBackend, server: FakeApi) -> KubernetesBackend:
    """A cluster with a quota tree: team a may have 12 cards, team b 16, both together 16."""
    serve_kube_queue(server)
    server.create(TREES, a_tree())
    many_nodes(server)
    return backend


async def test_fewer_cards_are_what_the_quota_tree_has_left(with_tree: KubernetesBackend, server: FakeApi) -> None:
    run_job(server, "old", "team-a", seconds=3600)
    queue_job(server, "train")
    outlook = await explained(with_tree, "train")
    assert found(outlook) == {(Change.CARDS, "4"): (True, 0), (Change.QUEUE, "root/b"): (True, 0)}
    assert "with 4 cards instead of 8: now, by cockpit's own plan" in words(outlook)
    assert "in queue root/b instead of root/a: now, by cockpit's own plan" in words(outlook)


async def test_a_smaller_job_of_kube_queue_is_behind_those_that_wait(
    with_tree: KubernetesBackend, server: FakeApi
) -> None:
    run_job(server, "old", "team-a", seconds=3600)
    for name in ("first", "second"):
        queue_job(server, name)
    for name in ("first", "second"):
        assert Change.CARDS not in {change for change, _ in found(await explained(with_tree, name))}


async def test_a_class_that_passes_the_jobs_ahead_of_kube_queues_queue(
    with_tree: KubernetesBackend, server: FakeApi
) -> None:
    for name, value in (("usual", 5), ("high", 100), ("top", 1000)):
        server.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    queue_job(server, "first", spec={"priority": 7})
    queue_job(server, "second")
    run_job(server, "other", "team-b")
    outlook = await explained(with_tree, "second")
    assert found(outlook) == {(Change.PRIORITY_CLASS, "high"): (True, 0), (Change.QUEUE, "root/b"): (True, 0)}
    assert found(await explained(with_tree, "first")).keys() == {(Change.QUEUE, "root/b")}


async def test_what_kube_queue_would_dequeue_has_to_find_nodes(backend: KubernetesBackend, server: FakeApi) -> None:
    serve_kube_queue(server)
    server.create(TREES, a_tree())
    server.create(NODES, a_node("n1", status={"allocatable": {GPU: "2"}}))
    run_job(server, "old", "team-a", seconds=3600)
    queue_job(server, "train")
    assert (await explained(backend, "train")).what_ifs == ()
