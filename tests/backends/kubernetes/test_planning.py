"""The scheduler's copy of a cluster: what jobs occupy, and what they ask for."""

from __future__ import annotations

import msgspec
import pytest

from cockpit.backends.kubernetes.mapping.cards.view import ClusterCards
from cockpit.backends.kubernetes.mapping.planning import ClusterLists, job_placement, state
from cockpit.backends.kubernetes.mapping.rows import row_of
from cockpit.backends.kubernetes.objects.pod import Pod
from cockpit.backends.kubernetes.objects.workload import Workload
from cockpit.model.ids import JobId, Millis
from cockpit.model.spec import Access
from tests.backends.kubernetes.objects import (
    CREATED,
    GPU,
    a_job,
    a_node,
    a_pytorch_job,
    a_running_pod,
    an_ended_pod,
    the_cards,
)


def two_cards(name: str) -> Pod:
    resources = {"limits": {"cpu": "8", "memory": "64Gi", GPU: 2}}
    return a_running_pod(name, spec={"containers": [{"name": "main", "image": "x", "resources": resources}]})


@pytest.mark.req("KU-05", "KU-06")
def test_several_pods_of_a_job_share_a_node() -> None:
    job = a_job(two_cards("a"), two_cards("b"), workload=a_pytorch_job())
    nodes, others = {"n1": a_node()}, (two_cards("c"), two_cards("d"))
    cards = ClusterCards({"n1": the_cards(nodes["n1"])})
    lists = ClusterLists(Millis(1), nodes, {JobId(7): job}, others, known_cards=cards)
    copied = state(lists)
    attempt = copied.jobs[JobId(7)].attempt
    assert attempt is not None
    (part,) = attempt.placement
    assert (part.cpus, part.memory_mib, [each.card for each in part.slices]) == (16, 2 * 65536, [0, 1, 2, 3])
    ((others,),) = copied.others.values()
    assert [(each.cpus, len(each.slices)) for each in others] == [(16, 4)]


@pytest.mark.req("KU-06")
def test_each_replica_of_a_job_has_its_own_cards_and_rank() -> None:
    job = a_job(two_cards("b"), an_ended_pod("a"), two_cards("c"), workload=a_pytorch_job())
    nodes = {"n1": a_node()}
    cards = ClusterCards({"n1": the_cards(nodes["n1"])})
    lists = ClusterLists(Millis(1), nodes, {JobId(7): job}, (two_cards("0"),), known_cards=cards)
    placed = job_placement(lists, JobId(7))
    assert [(each.rank, [part.card for part in each.slices]) for each in placed] == [(1, [2, 3]), (2, [4, 5])]


@pytest.mark.req("KU-03")
def test_a_train_job_has_the_size_that_it_names_until_its_pods_show_it() -> None:
    trainer = {"numNodes": 3, "image": "img:2", "command": ["torchrun"], "resourcesPerNode": {"limits": {GPU: 4}}}
    base = {"metadata": {"name": "t", "namespace": "a", "uid": "u", "creationTimestamp": CREATED}}

    def seen(*pods: Pod, **spec: object) -> tuple[int, int, str]:
        workload = msgspec.convert({**base, "spec": {"runtimeRef": {"name": "torch"}, **spec}}, Workload, strict=False)
        row = row_of(a_job(*pods, workload=workload, kind="TrainJob"), JobId(7), lambda _: "", Access.RW)
        return row.nodes, row.card_milli, row.command

    assert seen(trainer=trainer) == (3, 12_000, "torchrun")
    assert seen() == (1, 0, "")
    assert seen(two_cards("a"), trainer={"numNodes": 1})[:2] == (1, 2000)
