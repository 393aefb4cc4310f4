"""Where a fleet has sent a job and why not elsewhere, in sentences, on the job's page and in JSON."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.fleet_placement import (
    AmountThere,
    BoundCluster,
    Eviction,
    FleetPlacement,
    FleetPolicy,
    FleetStep,
    FleetWaits,
    MemberLookedAt,
    MemberObstacle,
)
from cockpit.model.ids import Millis
from cockpit.present.columns import Context
from cockpit.present.fleet_placement import fleet_json, fleet_lines
from cockpit.present.job.tabs import tab_lines
from cockpit.present.spans import plain
from tests.doubles.samples import NOW, detail
from tests.present.corpus import HOSTILE, is_harmless
from tests.present.job.test_page import AROUND

SHORT = MemberLookedAt("cn-2", MemberObstacle.SHORT, amounts=(AmountThere("nvidia.com/gpu", 16, 8),))
AMOUNTS = (AmountThere("cpu", 2500, 64_000), AmountThere("memory", 2**34, 2**30))
NODES = MemberLookedAt("cn-2", MemberObstacle.SHORT_NODES, "", AMOUNTS, 3, 1)
FLEET_WAITS = [
    (
        FleetWaits(FleetStep.UNSCHEDULED, members=(NODES,)),
        (
            "the fleet's scheduler binds it to no cluster; "
            "cn-2 has enough free in all, and by its resource models nodes for 1 of 3 replicas"
        ),
    ),
    (FleetWaits(FleetStep.NO_POLICY), "no PropagationPolicy selects it, so the fleet sends it to no cluster"),
    (FleetWaits(FleetStep.UNSEEN, "p"), "waits for the fleet to bind it to a cluster; policy p"),
    (
        FleetWaits(FleetStep.SUSPENDED, "p"),
        "waits in the fleet's queue: its scheduling is suspended until it is dequeued; policy p",
    ),
    (
        FleetWaits(FleetStep.UNSCHEDULED, "p", message="no cluster fits", members=(SHORT,)),
        (
            "the fleet's scheduler binds it to no cluster; no cluster fits; policy p; "
            "cn-2 has too little free in all: 16 nvidia.com/gpu asked, 8 free"
        ),
    ),
    (
        FleetWaits(
            FleetStep.UNSCHEDULED,
            members=(
                MemberLookedAt("a", MemberObstacle.NOT_READY, "gone"),
                MemberLookedAt("b", MemberObstacle.TAINT, "k=v", AMOUNTS),
                MemberLookedAt("c", MemberObstacle.SHORT, "", AMOUNTS),
            ),
        ),
        (
            "the fleet's scheduler binds it to no cluster; a does not answer the fleet: gone; b has the taint k=v, "
            "which the policy does not tolerate; c has too little free in all: 16G memory asked, 1G free"
        ),
    ),
    (
        FleetWaits(FleetStep.NOT_SENT, "p", ("a",)),
        "is bound to a, and sent there only when its suspended dispatching is lifted; policy p",
    ),
    (FleetWaits(FleetStep.NOT_APPLIED, "", ("a",), "denied"), "is bound to a, which has not taken it; denied"),
    (
        FleetWaits(FleetStep.FAILED_THERE, "p", ("a", "b"), seconds=30),
        "has failed on a and b; the fleet gives the placement up after 30 s; policy p",
    ),
    (FleetWaits(FleetStep.SENT, "p", ("a",)), "is bound to a, where it does not run yet; policy p"),
]

POLICY = FleetPolicy(
    name="example-policy",
    namespace="default",
    api_version="policy.one.alibabacloud.com/v1alpha1",
    division="Divided",
    gang=True,
    propagates_dependencies=True,
    suspended="scheduling",
    toleration_seconds=30,
    purge_mode="Immediately",
)
PLACEMENT = FleetPlacement(
    state="Created",
    policy=POLICY,
    bound=(
        BoundCluster(
            cluster="cn-1",
            replicas=3,
            roles=(("master", 1), ("worker", 2)),
            state="Running",
            applied=True,
            health="Healthy",
        ),
        BoundCluster(cluster="cn-3", replicas=2, message="denied"),
    ),
    event="Binding has been scheduled successfully. Result: {cn-1:0,[{master 1} {worker 2}]}",
    elsewhere=(SHORT,),
    evictions=(Eviction(cluster="cn-4", reason="ApplicationFailure", message="exit 1", at=Millis(NOW)),),
)
CONTEXT = Context(now=NOW, zone=UTC)


@pytest.mark.req("KU-11")
def test_the_page_says_by_which_policy_a_job_went_where_and_why_not_elsewhere() -> None:
    shown = list(fleet_lines(replace(detail(), fleet=PLACEMENT), CONTEXT))
    assert shown == [
        "Fleet",
        "  state       Created, of the fleet's own object",
        (
            "  policy      default/example-policy (policy.one.alibabacloud.com/v1alpha1) · Divided · Gang · scheduling "
            "suspended · with what the job refers to · a failed placement is given up after 30 s, removed Immediately"
        ),
        "  sent to     cn-1: master 1, worker 2 · Running · Healthy",
        "  sent to     cn-3: 2 replicas · not taken · denied",
        "  scheduler   Binding has been scheduled successfully. Result: {cn-1:0,[{master 1} {worker 2}]}",
        "  taken from  cn-4 since 12:00 (ApplicationFailure): exit 1",
        "  not on      cn-2 has too little free in all: 16 nvidia.com/gpu asked, 8 free",
    ]
    assert list(fleet_lines(detail(), CONTEXT)) == []
    none = replace(PLACEMENT, policy=None, state="", bound=(), event="", evictions=(), elsewhere=())
    assert list(fleet_lines(replace(detail(), fleet=none), CONTEXT)) == ["Fleet", "  policy      none selects it"]


@pytest.mark.req("KU-11")
def test_the_tab_why_has_the_section_too() -> None:
    lines = [plain(each) for each in tab_lines("why", replace(detail(), fleet=PLACEMENT), AROUND)]
    assert "Fleet" in lines
    assert any("cn-2 has too little free" in each for each in lines)


@pytest.mark.req("KU-11")
def test_scripts_get_the_same_as_an_object() -> None:
    found = fleet_json(replace(detail(), fleet=PLACEMENT), CONTEXT)
    assert found is not None
    assert found["policy"]["toleration_seconds"] == 30
    assert found["bound"][0]["roles"] == {"master": 1, "worker": 2}
    assert found["elsewhere"] == [
        {
            "cluster": "cn-2",
            "why": "short",
            "sentence": "cn-2 has too little free in all: 16 nvidia.com/gpu asked, 8 free",
            "amounts": [{"resource": "nvidia.com/gpu", "asked": 16, "free": 8}],
            "replicas": 0,
            "fitting": 0,
        }
    ]
    assert fleet_json(detail(), CONTEXT) is None


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
@pytest.mark.req("TR-05")
def test_names_are_escaped(hostile: str) -> None:
    policy = FleetPolicy(name=hostile, namespace=hostile, api_version=hostile, division=hostile, purge_mode=hostile)
    bound = BoundCluster(cluster=hostile, replicas=0, roles=((hostile, 1),), state=hostile, health=hostile)
    placement = FleetPlacement(
        state=hostile,
        policy=policy,
        bound=(bound, replace(bound, message=hostile, state="")),
        event=hostile,
        elsewhere=(MemberLookedAt(hostile, MemberObstacle.TAINT, hostile),),
        evictions=(Eviction(cluster=hostile, reason=hostile, message=hostile),),
    )
    assert all(map(is_harmless, fleet_lines(replace(detail(), fleet=placement), CONTEXT)))
