"""What a member takes by its resource models, as Karmada's estimator counts it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cockpit.backends.kubernetes.backend import KubernetesBackend
from cockpit.backends.kubernetes.mapping.fleet_models import modelled_replicas
from cockpit.backends.kubernetes.objects.fleet import MemberCluster
from cockpit.model.fleet_placement import FleetWaits, MemberObstacle
from tests.backends.kubernetes.fleet_objects import (
    ACK,
    BINDINGS,
    CLUSTERS,
    JOBS,
    POLICIES,
    a_binding,
    a_member,
    a_policy,
    serve_fleet,
    unscheduled,
)
from tests.backends.kubernetes.objects import GPU
from tests.backends.kubernetes.test_backend import a_job
from tests.doubles.kubernetes_api import FakeApi

pytestmark = pytest.mark.req("KU-11", "FL-06")
CPU, GIB = "cpu", 2**30


def a_modelled(counts: dict[int, int], *, lacks: str = "") -> dict[str, Any]:
    """A member whose nodes have 0, 1, 4 or 16 CPUs free at least, and four times as many GiB."""
    models = []
    for grade, cpus in enumerate((0, 1, 4, 16)):
        ranges = [
            {"name": "cpu", "min": str(cpus), "max": str(cpus * 4 or 1)},
            {"name": "memory", "min": f"{cpus * 4}Gi", "max": f"{cpus * 16 or 4}Gi"},
        ]
        models.append({"grade": grade, "ranges": [each for each in ranges if each["name"] != lacks]})
    counted = [{"grade": grade, "count": count} for grade, count in counts.items()]
    summary = {"allocatableModelings": counted}
    return a_member("cn-2", spec={"resourceModels": models}, status={"resourceSummary": summary})


def counted(member: dict[str, Any], **request: int) -> int | None:
    return modelled_replicas(msgspec.convert(member, MemberCluster, strict=False), request)


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        (1, 3 * 1 + 2 * 4 + 16),
        # Grade 1 has from 1 to 4 CPUs free: nothing says that one of its nodes has 2.
        (2, 2 * 2 + 8),
        (4, 2 + 4),
        (16, 1),
        (17, 0),
    ],
)
def test_a_node_counts_as_having_the_minimum_of_its_grade_free(cpus: int, expected: int) -> None:
    member = a_modelled({0: 5, 1: 3, 2: 2, 3: 1})
    assert counted(member, cpu=cpus * 1000, memory=GIB) == expected


def test_the_scarcest_resource_decides() -> None:
    assert counted(a_modelled({2: 2}), cpu=1000, memory=8 * GIB) == 4


@pytest.mark.parametrize(
    "member", [a_member(), a_modelled({}), a_modelled({2: 2}, lacks="memory")], ids=["none", "uncounted", "lacking"]
)
def test_models_that_say_nothing_of_a_request_give_no_answer(member: dict[str, Any]) -> None:
    assert counted(member, cpu=1000, memory=GIB) is None


def test_a_card_is_in_no_model_so_that_totals_decide() -> None:
    assert counted(a_modelled({2: 2}), cpu=1000, memory=GIB, **{GPU: 1}) is None


async def test_a_member_with_enough_in_all_and_no_node_with_enough_is_explained(
    backend: KubernetesBackend, server: FakeApi
) -> None:
    serve_fleet(server)
    server.create(CLUSTERS, a_modelled({0: 4, 2: 1}))
    container = {"name": "main", "image": "img:1", "resources": {"limits": {"cpu": "3", "memory": "4Gi"}}}
    job = a_job()
    job["spec"]["pytorchReplicaSpecs"] = {"Worker": {"replicas": 3, "template": {"spec": {"containers": [container]}}}}
    server.create(JOBS, job)
    server.create(POLICIES.format(ACK), a_policy())
    server.create(BINDINGS, a_binding(status=unscheduled("no cluster fits")))
    (row,) = await backend.jobs()
    assert isinstance(row.reason, FleetWaits)
    (member,) = row.reason.members
    assert (member.obstacle, member.replicas, member.fitting) == (MemberObstacle.SHORT_NODES, 3, 1)
