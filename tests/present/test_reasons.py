from __future__ import annotations

from datetime import UTC
from itertools import product
from typing import get_args

import pytest

from cockpit.model.fleet_placement import FleetStep, FleetWaits, MemberLookedAt, MemberObstacle
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.pod_reasons import (
    FlavorObstacle,
    FlavorTried,
    GangIncomplete,
    Gated,
    MembersPlaced,
    MemberState,
    MembersToPlace,
    MissingMembers,
    NodesExcluded,
    NodesLookedAt,
    Obstacle,
    PodsNotCreated,
    PodsStarting,
    QueueWaits,
    QuotaBorrower,
    QuotaInUse,
    StartStep,
    Unschedulable,
)
from cockpit.model.reasons import (
    DependencyNever,
    Held,
    LimitReached,
    NeverFits,
    NoAlternative,
    NodeShortfall,
    NoEligibleNode,
    NotEnoughFree,
    NotEvaluated,
    QuotaFull,
    Reason,
    Resource,
    SchedulerReason,
    WouldDelay,
)
from cockpit.model.spec import DependencyKind
from cockpit.present.reasons import REASON_TYPES, reason_sentence, reason_wording
from tests.doubles.samples import MINUTE, NOW, WAITS
from tests.present.corpus import HOSTILE, is_harmless
from tests.present.events.test_fleet import REASONS as FLEET_SENTENCES
from tests.present.test_fleet_placement import FLEET_WAITS
from tests.present.test_rule_reasons import SENTENCES as RULE_SENTENCES

N07, N12 = NodeName("n07"), NodeName("n12")

SENTENCES: list[tuple[Reason, str]] = [
    (Held("ann", Millis(NOW - 58 * MINUTE)), "held by ann since 11:02"),
    (NotEvaluated(), "waits for the scheduler to look at it"),
    (WAITS, "waits for 4 A100 on one node; n07 has 3 free, n12 has 2 free"),
    (
        NotEnoughFree(Resource.CARDS, 1, (), 1, 0, (NodeShortfall(N07, Resource.CARDS, 0),)),
        "waits for 1 card on one node; n07 has none free",
    ),
    (
        NotEnoughFree(Resource.CPUS, 8, (), 3, 1, (NodeShortfall(N07, Resource.MEMORY, 2048),)),
        "waits for 8 CPUs on each of 3 nodes; 1 node has room; n07 has 2G of memory free",
    ),
    (
        NotEnoughFree(Resource.MEMORY, 65_536, (), 2, 0, (NodeShortfall(N07, Resource.CPUS, 0),)),
        "waits for 64G of memory on each of 2 nodes; no node has room; n07 has no CPU free",
    ),
    (
        NotEnoughFree(
            Resource.CARD_SHARE, 500, ("A100", "H100"), 1, 0, (NodeShortfall(N12, Resource.CARD_SHARE, 250),), 21
        ),
        "waits for 0.5 of one A100 or H100 on one node; n12 has 0.25 free; 21 cards of other models are free",
    ),
    (
        NotEnoughFree(Resource.CARDS, 2, ("A100",), 1, 0, (), 1),
        "waits for 2 A100 on one node; 1 card of other models is free",
    ),
    (
        NotEnoughFree(
            Resource.CARDS, 1, (), 1, 0, (NodeShortfall(N07, Resource.CARDS, 0), NodeShortfall(N12, Resource.CARDS, 0))
        ),
        "waits for 1 card on one node; n07 and n12 have none free",
    ),
    (
        NotEnoughFree(Resource.NODE, 1, (), 2, 1, (NodeShortfall(N07, Resource.NODE, 0),)),
        "waits for 2 empty nodes; 1 node has room; n07 is occupied",
    ),
    (NeverFits(Resource.CARDS, 9, 8), "asks for 9 cards on one node; the largest has 8"),
    (NeverFits(Resource.CARDS, 2, 0, ("H100",)), "asks for 2 H100 on one node; no node has any"),
    (NeverFits(Resource.MEMORY, 1_048_576, 524_288), "asks for 1T of memory on one node; the largest has 512G"),
    (
        NeverFits(Resource.CARDS, 2, 0, ("H100",), ("spot",), ("vision",)),
        (
            "asks for 2 H100 on one node; no node that it may use has any; others are set apart for jobs that name "
            "pool vision; others are only for jobs that tolerate spot"
        ),
    ),
    (NeverFits(None, 5, 2), "asks for 5 nodes of that size; only 2 are big enough"),
    (NeverFits(None, 2, 1), "asks for 2 nodes of that size; only 1 is big enough"),
    (NeverFits(None, 1, 0), "asks for 1 node of that size; none is big enough"),
    (NoEligibleNode(pins=(N07,), out_of_service=(N07,)), "asks for node n07; n07 is out of service"),
    (
        NoEligibleNode(pins=(N07, N12), out_of_service=(N07, N12)),
        "asks for nodes n07 and n12; n07 and n12 are out of service",
    ),
    (
        NoEligibleNode(pool="gpu", driver_version="550"),
        "asks for pool gpu and driver version 550; the cluster has no such node",
    ),
    (
        NoEligibleNode(out_of_service=(N07,), why_out=("drained: fan broken",)),
        "asks for a node in service; n07 is drained: fan broken",
    ),
    (
        NoEligibleNode(out_of_service=(N07, N12), why_out=("drained: fan broken",) * 2),
        "asks for a node in service; n07 and n12 are drained: fan broken",
    ),
    (
        NoEligibleNode(out_of_service=(N07, N12), why_out=("drained: fan broken", "down")),
        "asks for a node in service; n07 and n12 are out of service (drained: fan broken; down)",
    ),
    (NoEligibleNode(), "asks for a node in service; the cluster has no such node"),
    (NoEligibleNode(pins=(N07,), partition="gpu"), "asks for node n07; partition gpu has no such node"),
    (
        NeverFits(None, 3, 2, partition="gpu"),
        "asks for 3 nodes of that size; only 2 are big enough; nodes outside partition gpu would do",
    ),
    (
        NoEligibleNode(labels=("disk=ssd", "zone=a"), taints=("gpu=yes", "spot")),
        "asks for labels disk=ssd and zone=a; such nodes are only for jobs that tolerate gpu=yes and spot",
    ),
    (
        NoEligibleNode(pins=(N07,), dedicated=("vision",)),
        "asks for node n07; such nodes are set apart for jobs that name pool vision",
    ),
    (
        NoAlternative(
            (
                NotEnoughFree(
                    Resource.CARDS, 4, ("A100",), 1, 0, (NodeShortfall(N07, Resource.CARDS, 3),), other_models_free=2
                ),
                NeverFits(Resource.CARDS, 9, 8, ("H100",)),
                LimitReached("account nlp", "GrpTRES", "gres/gpu", 8, 6, 4),
            )
        ),
        (
            "waits for 4 A100 on one node, or asks for 9 H100 on one node, or limit GrpTRES=gres/gpu of account nlp is "
            "8; spec 1: n07 has 3 free, 2 cards of other models are free; spec 2: the largest has 8; "
            "spec 3: 6 in use, 4 asked"
        ),
    ),
    (
        NoAlternative(
            (
                NotEnoughFree(Resource.CARDS, 4, ("A100",), 1, 0, (NodeShortfall(N07, Resource.CARDS, 3),)),
                NeverFits(Resource.CARDS, 9, 8, ("H100",)),
            )
        ),
        (
            "waits for 4 A100 on one node, or asks for 9 H100 on one node; spec 1: n07 has 3 free; "
            "spec 2: the largest has 8"
        ),
    ),
    (
        NoAlternative((NotEnoughFree(Resource.CPUS, 4, (), 1, 0, ()), NoEligibleNode(pool="x"))),
        "waits for 4 CPUs on one node, or asks for pool x; spec 2: the cluster has no such node",
    ),
    (
        WouldDelay(JobId(4711), Millis(NOW + 100 * MINUTE)),
        "would fit now, but would delay 4711, which is to start by 13:40",
    ),
    (SchedulerReason("Priority"), "jobs of higher priority come first"),
    (
        Unschedulable(
            2,
            4,
            21,
            (NodesExcluded(20, Obstacle.RESOURCE, "nvidia.com/gpu"), NodesExcluded(1, Obstacle.TAINT, "spot")),
        ),
        "none of 21 nodes can take 2 of its 4 pods; 20 have too little free nvidia.com/gpu, 1 has the taint spot",
    ),
    (
        QueueWaits("Kueue", "team-a", "Pending", "couldn't assign flavors to pod set main"),
        "waits for quota of Kueue in queue team-a; couldn't assign flavors to pod set main",
    ),
    (QueueWaits("Kueue", "team-a"), "waits for Kueue in queue team-a"),
    (
        QueueWaits("Kueue", "team-a", "WaitingForQuota", judged=True),
        (
            "waits for quota of Kueue in queue team-a; found by cockpit from the quotas, as Kueue says nothing of this "
            "job"
        ),
    ),
    (
        QueueWaits("KubeQueue", "a", "Enqueued", "hm"),
        "waits for KubeQueue to dequeue it from queue a; hm",
    ),
    (
        QueueWaits("KubeQueue", "a", "Reserved"),
        "has its quota of KubeQueue in queue a, and waits for admission checks",
    ),
    (
        QueueWaits("KubeQueue", "a", "TimeoutBackoff"),
        "was put back by KubeQueue into queue a, since it did not start in time",
    ),
    (QueueWaits("Kueue", "team-a", "Odd"), "is not admitted by Kueue in queue team-a (Odd)"),
    (QueueWaits("Volcano", "batch", "Closed"), "Volcano lets no job out of queue batch, which is closed"),
    (QueueWaits("Volcano", "batch", "NoQueue"), "Volcano has no queue batch"),
    (QueueWaits("Volcano", "batch", "InQueue"), "waits for its turn in Volcano's queue batch"),
    (QueueWaits("elastic quota", "nlp", "Quota", "used"), "does not fit into elastic quota nlp; used"),
    (
        GangIncomplete(
            "train",
            4,
            1,
            (
                MissingMembers(
                    2,
                    MemberState.NO_NODE,
                    ("w-1", "w-2"),
                    reason=Unschedulable(2, 4, 21, (NodesExcluded(21, Obstacle.RESOURCE, "nvidia.com/gpu"),)),
                ),
                MissingMembers(1, MemberState.NOT_CREATED, role="worker"),
            ),
        ),
        (
            "starts with 4 pods of gang train or not at all; 1 of them has a node; 2 have no node (w-1 and w-2): "
            "of 21 nodes 21 have too little free nvidia.com/gpu; 1 is not created (worker)"
        ),
    ),
    (
        GangIncomplete(
            "",
            8,
            0,
            by_nodes=MembersToPlace(
                8,
                4,
                (MembersPlaced(1, 4, ("n1", "n2", "n3")),),
                1,
                NodesLookedAt(3, 0, 3, (("gpu", 8),), (NodesExcluded(2, Obstacle.RESOURCE, "gpu", 4, model="H100"),)),
            ),
        ),
        (
            "starts with 8 pods or not at all; 0 of them have a node; by the nodes themselves, 4 of the 8 missing pods "
            "fit now: 1 on each of 4 nodes (n1, n2, n3 and 1 more); 4 more nodes with 8 H100 free are needed; "
            "of the other nodes 2 have 4 H100 free"
        ),
    ),
    (
        GangIncomplete("", 2, 1, by_nodes=MembersToPlace(1, 1, (MembersPlaced(1, 1, ("n1",)),))),
        (
            "starts with 2 pods or not at all; 1 of them has a node; by the nodes themselves, the missing pod fits "
            "now: 1 on n1"
        ),
    ),
    (
        GangIncomplete("", 2, 0, (MissingMembers(2, MemberState.WOULD_FIT, ("w-0", "w-1")),)),
        "starts with 2 pods or not at all; 0 of them have a node; 2 would fit (w-0 and w-1)",
    ),
    (
        QueueWaits(
            "Kueue",
            "team-a",
            "WaitingForQuota",
            "as below",
            flavors=(
                FlavorTried("h100", FlavorObstacle.SHORT, "nvidia.com/gpu", missing="4"),
                FlavorTried("a100", FlavorObstacle.EXCLUDED, about="the taint spot"),
                FlavorTried("l40s", FlavorObstacle.SHORT, "cpu", about="borrowing limit"),
            ),
            quotas=(
                QuotaInUse(
                    *("mine", "h100", "nvidia.com/gpu", "8", "4", "4", "8"),
                    (QuotaBorrower("theirs", "4", "Any"), QuotaBorrower("others", "1", "Never")),
                ),
            ),
            share=250,
            position_in_queue=2,
        ),
        (
            "waits for quota of Kueue in queue team-a; 4 more nvidia.com/gpu needed in flavor h100; flavor a100 "
            "is excluded by the taint spot; too little cpu in flavor l40s (borrowing limit); 8 nvidia.com/gpu in "
            "flavor h100 asked, 4 free, mine uses 4 of its 8, theirs borrows 4, which this job may take back, "
            "others borrows 1, which this job may not take back; queues with the smallest share of the cohort "
            "come first, and the share of its queue is 250; number 2 of queue team-a"
        ),
    ),
    (
        QueueWaits(
            "Kueue",
            "team-a",
            "ExceedsMaxQuota",
            never=True,
            flavors=(
                FlavorTried("h100", FlavorObstacle.TOO_LARGE, "nvidia.com/gpu", most="16"),
                FlavorTried("", FlavorObstacle.NO_QUOTA, "cpu"),
            ),
        ),
        (
            "asks for more than Kueue can ever admit in queue team-a; more nvidia.com/gpu than flavor h100 ever has "
            "for this queue, at most 16; its queue has no quota for cpu"
        ),
    ),
    (
        QueueWaits("Kueue", "team-a", "PodsReadyTimeout", until=Millis(NOW + 60_000)),
        "was put back by Kueue into queue team-a, since its pods were not ready in time; not before 12:01",
    ),
    *FLEET_WAITS,
    (PodsNotCreated("PyTorchJob"), "waits for the controller of its PyTorchJob to create its pods"),
    (PodsNotCreated("Job", "quota"), "waits for the controller of its Job to create its pods; quota"),
    (Gated(("kueue.x-k8s.io/admission",)), "scheduling gates keep it back: kueue.x-k8s.io/admission"),
    (
        PodsStarting(StartStep.IMAGE, 2, "ErrImagePull", "not found"),
        "2 pods cannot pull the image (ErrImagePull); not found",
    ),
]


@pytest.mark.parametrize(("reason", "sentence"), SENTENCES, ids=[sentence[:40] for _, sentence in SENTENCES])
@pytest.mark.req("SC-14")
def test_every_reason_has_its_sentence(reason: Reason, sentence: str) -> None:
    assert reason_sentence(reason, NOW, UTC) == sentence


def test_no_reason_is_forgotten() -> None:
    kinds = set(get_args(Reason))
    assert {type(reason) for reason, _ in [*SENTENCES, *RULE_SENTENCES, *FLEET_SENTENCES]} == kinds
    assert {kind.__struct_config__.tag for kind in kinds} == set(REASON_TYPES)


@pytest.mark.parametrize("hostile", HOSTILE, ids=ascii)
@pytest.mark.req("TR-05")
def test_names_in_reasons_are_escaped(hostile: str) -> None:
    node = NodeName(hostile)
    reasons: list[Reason] = [
        SchedulerReason(hostile, hostile),
        Unschedulable(1, 1, 3, (NodesExcluded(3, Obstacle.TAINT, hostile),)),
        Unschedulable(1, 1, None, message=hostile),
        PodsNotCreated(hostile, hostile),
        Gated((hostile,)),
        GangIncomplete(
            hostile, 2, 0, (MissingMembers(2, MemberState.NO_NODE, (hostile,), hostile, Gated((hostile,))),), hostile
        ),
        QueueWaits(hostile, hostile, hostile, hostile),
        QueueWaits(
            hostile,
            hostile,
            flavors=tuple(FlavorTried(hostile, each, hostile, hostile, hostile, hostile) for each in FlavorObstacle),
            quotas=(QuotaInUse(*[hostile] * 7, (QuotaBorrower(hostile, hostile, hostile),)),),
        ),
        PodsStarting(StartStep.INIT, 1, hostile, hostile),
        *(
            FleetWaits(step, hostile, (hostile,), hostile, 30, (MemberLookedAt(hostile, obstacle, hostile),))
            for step, obstacle in product(FleetStep, MemberObstacle)
        ),
        SchedulerReason(f"ReqNodeNotAvail, UnavailableNodes:{hostile}"),
        Held(hostile, NOW),
        NotEnoughFree(Resource.CARDS, 1, (hostile,), 1, 0, (NodeShortfall(node, Resource.CARDS, 1),)),
        NeverFits(Resource.CARDS, 1, 0, (hostile,)),
        NoEligibleNode(pins=(node,), pool=hostile, driver_version=hostile, out_of_service=(node,)),
    ]
    assert all(is_harmless(reason_sentence(reason, NOW, UTC)) for reason in reasons)


@pytest.mark.req("UI-13")
@pytest.mark.parametrize(
    ("reason", "brief"),
    [
        (Held("ann", Millis(NOW)), "held by ann"),
        (WouldDelay(JobId(4712), Millis(NOW)), "fits now, but would delay job 4712"),
        (WAITS, "needs 4 A100 on one node"),
        (NotEnoughFree(Resource.CARDS, 8, ("A100", "H100"), 2, 0, ()), "needs 2 nodes with 8 A100 or H100"),
        (NeverFits(Resource.CARDS, 12, 8, ("A100",)), "no node has 12 A100"),
        (NeverFits(None, 4, 3), "only 3 are big enough of the 4 nodes it asks for"),
        (NoEligibleNode(pins=(N07,), out_of_service=(N07,), why_out=("drained: fan broken",)), "n07 is out of service"),
        (NoEligibleNode(pool="a"), "the cluster has no pool a"),
        (LimitReached("user erin of account vision", "MaxJobs", "", 16, 16, 1), "erin is at the limit of 16 jobs"),
        (LimitReached("account bio", "GrpTRES", "cpu", 448, 440, 16), "account bio has 440 of 448 CPUs in use"),
        (LimitReached("account bio", "GrpTRES", "cpu", 448, 448, 16), "account bio is at the limit of 448 CPUs"),
        (LimitReached("qos short", "MaxWall", "", 3600, 0, 7200), "asks for 2 h, limit of qos short: 1 h"),
        (DependencyNever(DependencyKind.AFTER_OK, JobId(47)), "never starts: job 47 did not succeed"),
        (QuotaFull("root/nlp", "gres/gpu", 32, 30, 4), "queue root/nlp has 30 of its 32 cards in use"),
        (SchedulerReason("AssocMaxJobsLimit"), "at the job limit of its account or user"),
        (
            Unschedulable(1, 1, 20, (NodesExcluded(20, Obstacle.RESOURCE, "cpu"),)),
            "no node: 20 have too little free cpu",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_list_says_each_reason_in_a_short_clause(reason: Reason, brief: str) -> None:
    assert reason_wording(reason, NOW, UTC).brief == brief


BRIEF_COLUMNS = 52
"""What the column of reasons has on a screen of 160 columns."""


@pytest.mark.req("UI-13")
@pytest.mark.parametrize("reason", [each for each, _ in (*SENTENCES, *RULE_SENTENCES, *FLEET_SENTENCES)], ids=str)
def test_the_short_clause_of_every_reason_fits_the_list(reason: Reason) -> None:
    brief = reason_wording(reason, NOW, UTC).brief
    assert 0 < len(brief) <= BRIEF_COLUMNS, brief
    assert "; " not in brief or "waits again" in brief
