"""Slurm's generic resources as cards and their slices, and licences as queues."""

from __future__ import annotations

import pytest

from cockpit.backends.slurm.mapping import licences
from cockpit.backends.slurm.mapping.cluster import ClusterLists, state
from cockpit.backends.slurm.mapping.jobparts import node_spec
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.nodes import cards_of, slurm_nodes
from cockpit.backends.slurm.mapping.placements import UnattributedGpus, allocation_records, details, place_jobs
from cockpit.backends.slurm.mapping.records import records_of_key, words
from cockpit.backends.slurm.mapping.rest.questions import question
from cockpit.model.cluster import Cluster
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.view import QueueKind
from tests.backends.slurm.test_values import a_record

MIG = "gpu:a100:1(S:0),gpu:a100_1g.5gb:7(S:0),gpu:a100_3g.20gb:2(S:1)"


@pytest.mark.req("SL-11")
def test_instances_of_mig_are_slices_of_the_card_that_they_are_cut_from() -> None:
    gres = cards_of(MIG)
    assert [(card.model, card.slices) for card in gres.cards] == [("a100", 0), ("a100_1g.5gb", 7), ("a100_3g.20gb", 2)]
    held = list(gres.held("gpu:a100:1(IDX:0),gpu:a100_1g.5gb:2(IDX:1,7),gpu:a100_3g.20gb:1(IDX:9)"))
    assert held == [CardSlice(0, None), CardSlice(1, 0, 142), CardSlice(1, 6, 142), CardSlice(2, 1, 500)]


@pytest.mark.parametrize(
    ("printed", "held"),
    [
        ("shard:3(IDX:2)", [CardSlice(2, 0, 750)]),
        ("shard:6(IDX:0-1)", [CardSlice(0, 0, 750), CardSlice(1, 0, 750)]),
        ("shard:a100:4(0/4,3/4,1/4,0/4)", [CardSlice(1, 0, 750), CardSlice(2, 0, 250)]),
        ("gpu:a100:2(IDX:0,3)", [CardSlice(0, None), CardSlice(3, None)]),
        ("gpu:a100:0(IDX:N/A),shard:0", []),
    ],
)
@pytest.mark.req("SL-11")
def test_shards_are_parts_of_the_cards_that_they_are_on(printed: str, held: list[CardSlice]) -> None:
    assert list(cards_of("gpu:a100:4,shard:a100:16").held(printed)) == held


@pytest.mark.req("SL-11")
def test_allocated_cards_of_no_visible_job_belong_to_other_users() -> None:
    line = "NodeName=n1 CPUTot=8 RealMemory=1000 Gres=gpu:a100:4 GresUsed=gpu:a100:3(IDX:0-1,3) State=MIXED"
    (node,) = slurm_nodes([words(line)])
    told = "JobId=7 JobName=x\n     Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:a100:2(IDX:0-1)\n"
    ((part,),) = UnattributedGpus([node], details(allocation_records(told), {node.node.name: node.gres})).others()[""]
    assert part == Allocation(0, NodeName("n1"), 0, 0, (CardSlice(3, None),)), "their jobs are not known"
    all_told = details(allocation_records(told.replace("0-1", "0-1,3")), {node.node.name: node.gres})
    assert UnattributedGpus([node], all_told).others() == {}


CARDS = "gpu:a100:4"
INSTANCES = "gpu:a100_1g.5gb:7"


@pytest.mark.parametrize(
    ("has", "used", "asked", "held", "others"),
    [
        (CARDS, "gpu:a100:3(IDX:0-1,3)", {"tres-per-node": "gres:gpu:1"}, [CardSlice(0, None)], 2),
        (CARDS, "gpu:a100:1(IDX:3)", {"tres-per-node": "gres:gpu:1"}, [CardSlice(3, None)], 0),
        (CARDS, "gpu:a100:1(IDX:0)", {"tres-alloc": "gres/gpu=2"}, [CardSlice(0, None), CardSlice(1, None)], 0),
        (CARDS, "gpu:a100:1(IDX:3)", {"tres-per-node": "gres:gpu:h100:1"}, [], 1),
        (f"{CARDS},shard:16", "shard:1(IDX:2)", {"tres-alloc": "gres/shard=2"}, [CardSlice(2, 0, 500)], 0),
        (f"{CARDS},shard:16", "gpu:a100:1(IDX:2)", {"tres-alloc": "gres/shard=2"}, [CardSlice(0, 0, 500)], 1),
        (INSTANCES, "gpu:a100_1g.5gb:3(IDX:2,4,6)",
         {"tres-alloc": "gres/gpu=2", "tres-per-node": "gres:gpu:a100_1g.5gb:2"},
         [CardSlice(0, 2, 142), CardSlice(0, 4, 142)], 1),
    ],
)  # fmt: skip
@pytest.mark.req("SL-11")
def test_a_recently_started_job_has_cards_that_no_other_job_is_shown_with(
    has: str, used: str, asked: dict[str, str], held: list[CardSlice], others: int
) -> None:
    (node,) = slurm_nodes([words(f"NodeName=n4 CPUTot=8 RealMemory=1000 Gres={has} GresUsed={used} State=MIXED")])
    runs = {"State": "RUNNING", "NodeList": "n4", "StartTime": "2026-11-21T08:00:01", "tres-alloc": "gres/gpu=1"}
    job = Listed(a_record(JobID="7", **runs | asked), shards_per_card=node.gres.shards_per_card).job
    untold = UnattributedGpus([node])
    (found,) = place_jobs([job], {node.node.name: node.node}, {}, untold)
    assert found.attempt is not None
    assert [each for part in found.attempt.placement for each in part.slices] == held
    assert sum(len(part.slices) for each in untold.others().values() for (part,) in each) == others


@pytest.mark.req("SL-11")
def test_unreported_mig_instances_are_assumed_to_be_the_first_of_the_card() -> None:
    (node,) = slurm_nodes([words("NodeName=n4 CPUTot=8 RealMemory=1000 Gres=gpu:a100_1g.5gb:7 State=MIXED")])
    asked = {"tres-alloc": "cpu=1,gres/gpu=2", "tres-per-node": "gres:gpu:a100_1g.5gb:2"}
    runs = {"State": "RUNNING", "NodeList": "n4", "StartTime": "2026-11-21T08:00:01", **asked}
    jobs = [Listed(a_record(JobID=number, **runs)).job for number in ("7", "8")]
    found = place_jobs(jobs, {node.node.name: node.node}, {}, UnattributedGpus())
    pieces = [each.slices for job in found if job.attempt is not None for each in job.attempt.placement]
    assert pieces == [(CardSlice(0, 0, 142), CardSlice(0, 1, 142)), (CardSlice(0, 2, 142), CardSlice(0, 3, 142))]


@pytest.mark.req("SL-11")
def test_a_recently_started_job_is_assumed_to_have_no_more_of_a_node_than_there_is() -> None:
    """squeue has 26 CPUs on two nodes, of 12 and 16."""
    sizes = ((1, 12, 900), (2, 16, 4000))
    printed = "".join(f"NodeName=n{name} CPUTot={cpus} RealMemory={mem} State=MIXED\n" for name, cpus, mem in sizes)
    nodes = {each.node.name: each.node for each in slurm_nodes(records_of_key(printed, "NodeName"))}
    runs = {"State": "RUNNING", "NodeList": "n[1-2]", "StartTime": "2026-11-21T08:00:01", "NumNodes": "2"}
    job = Listed(a_record(JobID="7", NumCPUs="26", **{"tres-alloc": "cpu=26,mem=2000M,node=2"}, **runs)).job
    (found,) = place_jobs([job], nodes, {}, UnattributedGpus())
    assert found.attempt is not None
    assert [(part.cpus, part.memory_mib) for part in found.attempt.placement] == [(12, 900), (13, 1000)]


@pytest.mark.parametrize(
    ("asked", "milli", "models"),
    [
        ({"tres-alloc": "cpu=1,gres/gpu=2", "tres-per-node": "gres:gpu:a100_1g.5gb:2"}, 284, ("a100_1g.5gb",)),
        ({"tres-alloc": "cpu=1,gres/gpu=8", "tres-per-job": "gres/gpu:a100_1g.5gb=8"}, 2000, ("a100_1g.5gb",)),
        ({"tres-alloc": "cpu=1,gres/gpu=2", "tres-per-node": "gres:gpu:2"}, 2000, ()),
        ({"tres-alloc": "cpu=1,gres/gpu=2,gres/gpu:h100=2"}, 2000, ("h100",)),
        ({"tres-alloc": "cpu=1,gres/shard=3"}, 750, ()),
    ],
)
@pytest.mark.req("SL-11")
def test_the_cards_that_a_job_requests(asked: dict[str, str], milli: int, models: tuple[str, ...]) -> None:
    spec = node_spec(a_record(**asked), 4)
    assert (spec.card_milli, spec.card_models) == (milli, models)


@pytest.mark.req("SL-11", "SL-13")
def test_licences_are_queues_with_waiting_and_running_jobs() -> None:
    printed = "LicenseName=matlab Total=4 Used=3 Free=1 Reserved=0 Remote=no\nLicenseName=fluent@site Total=9 Used=0\n"
    runs = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:01"}
    jobs = [
        Listed(a_record(JobID="7", Licenses="matlab:1", **runs)),
        Listed(a_record(JobID="8", Licenses="matlab:2,fluent@site", **runs)),
        Listed(a_record(JobID="9", ArrayJobID="9", ArrayTaskID="0-4", Licenses="matlab:2")),
        Listed(a_record(JobID="10", Licenses="N/A")),
    ]
    known = list(licences.licences(records_of_key(printed, licences.KEY)))
    matlab, fluent = licences.queue_rows(known, jobs)
    assert (matlab.kind, matlab.name, matlab.waiting, matlab.running) == (QueueKind.LICENCE, "matlab", 5, 2)
    assert (matlab.used, matlab.max, fluent.running) == ({"license": 3000}, {"license": 4000}, 1)
    wanted = licences.requested(jobs[2].fields)
    assert licences.usage_text(known, wanted) == "matlab: 3 of 4 in use, 2 asked"
    assert licences.holders(jobs, wanted) == (JobId(8), JobId(7))
    assert list(licences.licences(records_of_key("No licenses configured in Slurm.\n", licences.KEY))) == []


@pytest.mark.req("SL-01", "SL-11")
def test_licences_of_slurmrestd_are_the_same() -> None:
    asked = question(licences.COMMAND, 38)
    assert asked is not None
    told = {"LicenseName": "matlab", "Total": 4, "Used": 3, "Free": 1, "Remote": False, "Reserved": 0}
    assert list(licences.licences(asked.read({"licenses": [told]}))) == [licences.Licence("matlab", 4, 3)]


@pytest.mark.req("SL-11")
def test_a_job_has_its_cpus_and_memory_on_each_of_its_nodes() -> None:
    told = (
        "JobId=7 JobName=x\n     Nodes=n[1-2] CPU_IDs=0-2 Mem=4096 GRES=\n     Nodes=n3 CPU_IDs=5 Mem=1G GRES=\n\n"
        "JobId=9 ArrayJobId=8 ArrayTaskId=3 JobName=y\n     Nodes=n1 CPU_IDs=0-1,7 Mem= GRES=\n"
    )
    first, second = details(allocation_records(told)).values()
    assert {name: (part.cpus, part.memory_mib, part.rank) for name, part in first.items()} == {
        "n1": (3, 4096, 0),
        "n2": (3, 4096, 0),
        "n3": (1, 1024, 0),
    }
    assert [(part.cpus, part.memory_mib) for part in second.values()] == [(3, 0)]


@pytest.mark.req("SL-11")
def test_cards_of_other_users_count_as_in_use_only_where_allocations_are_listed() -> None:
    line = "NodeName=n1 CPUTot=8 RealMemory=1000 Gres=gpu:a100:4 GresUsed=gpu:a100:3(IDX:0-1,3) State=MIXED"
    nodes = tuple(slurm_nodes([words(line)]))
    told = "JobId=7 JobName=x\n     Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:a100:2(IDX:0-1)\n"
    listed = details(allocation_records(told), {each.node.name: each.gres for each in nodes})
    everything = ClusterLists(Millis(0), Cluster(), nodes, (), details=listed)
    ((part,),) = state(everything, as_ranked=True).others[""]
    assert part.slices == (CardSlice(3, None),)
    assert state(everything._replace(details={}), as_ranked=True).others == {}


@pytest.mark.req("SL-11")
def test_a_node_without_shards_has_none_on_its_only_card() -> None:
    assert cards_of("gpu:a100:1").shards_per_card == 0
    assert cards_of("gpu:a100:1,shard:4").shards_per_card == 4
