"""What single fields of squeue's and scontrol's records say of a job and of its cards."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.slurm.mapping import accounting, jobparts, placements, states, values
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.nodes import Cards, SlurmNode, cards_of, slurm_nodes
from cockpit.backends.slurm.mapping.reasons import never_starts, reason, with_figures
from cockpit.backends.slurm.mapping.records import records_of_key
from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.cluster import Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.node import CardSlice, CardVendor
from cockpit.model.reasons import (
    ArrayFull,
    BeginsLater,
    DependencyNever,
    Held,
    InReservation,
    NoEligibleNode,
    PartitionRefuses,
    PartitionRule,
    SchedulerReason,
    SuspendedReason,
    WaitsForJob,
    WouldDelay,
)
from cockpit.model.spec import NO_LIMIT_SECONDS, NodeSpec
from tests.backends.slurm.test_values import a_record
from tests.builders import a_card, a_node

pytestmark = pytest.mark.req("SL-10", "SL-11", "SL-13")


@pytest.mark.parametrize(
    ("reason_code", "state", "who"),
    [
        ("JobHeldUser", "PENDING", "ann"),
        ("JobHeldAdmin", "PENDING", "an administrator"),
        ("JobHoldMaxRequeue", "PENDING", "Slurm"),
        ("ReservationDeleted", "PENDING", "Slurm"),
        ("None", "REQUEUE_HOLD", "Slurm"),
        ("None", "SPECIAL_EXIT", "Slurm"),
        ("Priority", "PENDING", ""),
    ],
)
def test_who_holds_a_job(reason_code: str, state: str, who: str) -> None:
    assert jobparts.holder(reason_code, state, "ann") == who


@pytest.mark.parametrize(
    ("code", "eligible", "submitted", "begin"),
    [
        ("BeginTime", 100, 100, 100),
        ("BeginTime", None, 100, None),
        ("Priority", 60_100, 100, None),
        ("Priority", 60_101, 100, 60_101),
        ("Priority", None, 100, None),
        ("Priority", 60_001, None, 60_001),
    ],
)
def test_a_begin_is_what_the_owner_set(code: str, eligible: Any, submitted: Any, begin: Any) -> None:
    assert jobparts.begin_at(code, eligible, submitted) == begin


@pytest.mark.parametrize(
    ("fields", "nodes", "cpus", "memory", "cards", "models"),
    [
        ({"tres-alloc": "cpu=8,mem=5G,node=2"}, 2, 4, 2560, 0, ()),
        ({"tres-alloc": "cpu=9,mem=5G,node=2"}, 2, 5, 2560, 0, ()),
        ({"tres-alloc": "mem=1001M", "NumCPUs": "3"}, 2, 2, 501, 0, ()),
        ({"tres-alloc": "", "NumCPUs": ""}, 1, 1, 0, 0, ()),
        ({"tres-alloc": "cpu=2,gres/gpu=3"}, 2, 1, 0, 2000, ()),
        ({"tres-alloc": "cpu=2,gres/gpu:a100=4"}, 2, 1, 0, 2000, ("a100",)),
        ({"tres-alloc": "cpu=1,gres/gpu=2", "tres-per-node": "gres/gpu:H100:2"}, 1, 1, 0, 2000, ("h100",)),
        ({"tres-alloc": "cpu=1,gres/gpu=2", "tres-per-job": "gpu:H100=1,gpu:h100=1"}, 1, 1, 0, 2000, ("h100",)),
        ({"tres-alloc": "cpu=1,gres/shard=2"}, 1, 1, 0, 500, ()),
        ({"tres-alloc": "cpu=1,gres/shard=5"}, 1, 1, 0, 2000, ()),
        ({"tres-alloc": "cpu=1,gres/shard=4"}, 1, 1, 0, 1000, ()),
    ],
)
def test_what_a_job_requests_of_each_node(
    fields: dict[str, str], nodes: int, cpus: int, memory: int, cards: int, models: tuple[str, ...]
) -> None:
    spec = jobparts.node_spec(a_record(NumNodes=str(nodes), **fields), 4)
    assert (spec.cpus, spec.memory_mib, spec.card_milli, spec.card_models) == (cpus, memory, cards, models)


def test_shards_of_a_cluster_without_shards_are_no_cards() -> None:
    assert jobparts.node_spec(a_record(**{"tres-alloc": "cpu=1,gres/shard=2"}), 0).card_milli == 0


@pytest.mark.parametrize(
    ("fields", "attribute", "value"),
    [
        ({"Command": "(null)"}, "command", jobparts.NO_COMMAND),
        ({"Command": "/home/ann/x.sh"}, "command", "/home/ann/x.sh"),
        ({"STDOUT": "/o", "WorkDir": "/w"}, "output", "/o"),
        ({"STDOUT": "N/A", "WorkDir": "/w"}, "output", "/w"),
        ({"NumNodes": "0"}, "nodes", 1),
        ({"NumNodes": "3-4"}, "nodes", 3),
        ({"TimeLimit": "UNLIMITED"}, "time_limit_seconds", NO_LIMIT_SECONDS),
        ({"Nice": "-7"}, "nice", -7),
        ({"Nice": "N/A"}, "nice", 0),
        ({"QOS": "(null)"}, "qos", None),
        ({"Reservation": "(null)"}, "reservation", ""),
        ({"ReqNodes": "n[1-2]"}, "node_names", ("n1", "n2")),
    ],
)
def test_fields_of_a_record_are_fields_of_the_job(fields: dict[str, str], attribute: str, value: object) -> None:
    assert getattr(Listed(a_record(**fields)).job.spec, attribute) == value


@pytest.mark.parametrize(("restarts", "number"), [("", 1), ("0", 1), ("2", 3)])
def test_each_requeue_is_another_attempt(restarts: str, number: int) -> None:
    runs = {"State": "RUNNING", "NodeList": "n[1-2]", "NumNodes": "2", "StartTime": "2026-11-21T08:00:00"}
    job = Listed(a_record(**runs, RestartCnt=restarts, Partition="gpu", **{"tres-alloc": "cpu=4,billing=7"})).job
    assert job.attempt is not None
    assert (job.attempt.number, job.attempt.partition, job.attempt.billing) == (number, "gpu", 7.0)
    assert [(part.rank, part.node, part.cpus) for part in job.attempt.placement] == [(0, "n1", 2), (1, "n2", 2)]
    assert [each.started_at for each in job.attempt.replicas] == [job.attempt.placed_at] * 2
    assert job.submitter.uid == 1000


WAITS = {"State": "PENDING"}
MAINT = Reservation(name="maint", nodes=(), start_at=5, end_at=9)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"State": "SUSPENDED"}, SuspendedReason()),
        ({"State": "RUNNING", "NodeList": "n1"}, None),
        ({"Reason": "JobHeldUser"}, Held("ann", None)),
        ({"Reason": "BeginTime", "EligibleTime": "1795248117"}, BeginsLater(Millis(1_795_248_117_000))),
        ({"Reason": "BeginTime"}, SchedulerReason("BeginTime")),
        ({"Reason": "Dependency", "Dependency": "(null)"}, SchedulerReason("Dependency")),
        (
            {"Reason": "Dependency", "Dependency": "afterok:4_2(unfulfilled),afterany:5(unfulfilled)"},
            WaitsForJob("afterok", JobId(4), 1, 2),
        ),
        (
            {"Reason": "DependencyNeverSatisfied", "Dependency": "afterok:4_2(failed)"},
            DependencyNever("afterok", JobId(4), 2),
        ),
        ({"Reason": "Reservation", "Reservation": "maint"}, InReservation("maint", Millis(5))),
        ({"Reason": "Reservation", "Reservation": "gone"}, SchedulerReason("Reservation", "reservation gone")),
        ({"Reason": "QOSGrpCpuLimit", "QOS": "high"}, SchedulerReason("QOSGrpCpuLimit", "QOS high")),
        ({"Reason": "AssocMaxJobsLimit", "Account": "nlp"}, SchedulerReason("AssocMaxJobsLimit", "ann in account nlp")),
        ({"Reason": "PartitionDown", "Partition": "a,b"}, SchedulerReason("PartitionDown", "partition a, b")),
        ({"Reason": "Resources"}, SchedulerReason("Resources")),
    ],
)
def test_every_code_is_a_reason_with_what_is_known(fields: dict[str, str], expected: object) -> None:
    assert reason(Listed(a_record(**WAITS | fields)), {"maint": MAINT}) == expected


def test_a_full_array_names_how_many_of_its_tasks_run_at_once() -> None:
    array = {"ArrayJobID": "7", "ArrayTaskID": "3-9%2", "Reason": "JobArrayTaskLimit"}
    assert reason(Listed(a_record(**WAITS | array))) == ArrayFull(JobId(7), 2)
    alone = Listed(a_record(**WAITS | {"Reason": "JobArrayTaskLimit"}))
    assert reason(alone) == SchedulerReason("JobArrayTaskLimit")


@pytest.mark.parametrize(
    ("code", "never"),
    [("JobHeldUser", True), ("PartitionConfig", True), ("Priority", False), ("BeginTime", False)],
)
def test_jobs_that_wait_for_a_user_never_start_by_themselves(code: str, never: bool) -> None:
    assert never_starts(Listed(a_record(**WAITS | {"Reason": code}))) is never


NO_NODE = NoEligibleNode(())
REFUSES = PartitionRefuses("gpu", PartitionRule.MAX_TIME, "1", "2")


@pytest.mark.parametrize(
    ("told", "core", "same"),
    [
        (SchedulerReason("ReqNodeNotAvail, UnavailableNodes:n1"), NO_NODE, True),
        (SchedulerReason("Nodes_required_for_job_are_DOWN"), NO_NODE, True),
        (SchedulerReason("Priority"), WouldDelay(JobId(1), Millis(1)), True),
        (SchedulerReason("Priority"), NO_NODE, False),
        (SchedulerReason("PartitionTimeLimit"), REFUSES, True),
        (SchedulerReason("Unheard"), REFUSES, False),
        (SchedulerReason("Priority"), None, False),
        (Held("ann", None), NO_NODE, False),
    ],
)
def test_the_schedulers_reason_is_shown_where_it_means_the_same(told: Any, core: Any, same: bool) -> None:
    assert with_figures(told, core) is (core if same else told)


@pytest.mark.parametrize(
    ("printed", "word"),
    [("CANCELLED by 20001", "CANCELLED"), ("COMPLETED*", "COMPLETED"), ("running+x y", "RUNNING")],
)
def test_the_state_is_the_first_word(printed: str, word: str) -> None:
    assert states.word(printed) == word


def test_an_unknown_state_runs_if_it_has_nodes() -> None:
    assert not states.is_known("HIBERNATING")
    assert states.job_state("HIBERNATING", placed=True) is JobState.RUNNING
    assert states.job_state("HIBERNATING", placed=False) is JobState.QUEUED
    assert states.end_cause("HIBERNATING") is None
    assert states.end_cause("BOOT_FAIL") is EndCause.START_FAILED


@pytest.mark.parametrize(
    ("state", "printed", "status"),
    [
        ("FAILED", "3:0", ExitStatus(code=3)),
        ("FAILED", "768", ExitStatus(code=3)),
        ("CANCELLED", "9", ExitStatus(signal=9)),
        ("FAILED", "", ExitStatus(code=0)),
        ("OUT_OF_MEMORY", "0:9", ExitStatus(signal=9, oom=True)),
        ("NODE_FAIL", "0:0", ExitStatus(lost="a node of it failed")),
    ],
)
def test_how_a_job_ended_is_read_from_its_code(state: str, printed: str, status: ExitStatus) -> None:
    found = states.exit_of(state, printed)
    assert (found.code or 0, found.signal, found.oom, found.lost) == (
        status.code or 0,
        status.signal,
        status.oom,
        status.lost,
    )


NODE = "NodeName=n1 CPUTot=8 RealMemory=1000 State=IDLE "


@pytest.mark.parametrize(
    ("fields", "cpus", "memory", "host"),
    [
        ("CPUEfctv=6 MemSpecLimit=100 NodeHostName=a.b", 6, 900, "a.b"),
        ("NodeHostName=(null)", 8, 1000, ""),
        ("MemSpecLimit=2000", 8, 0, ""),
    ],
)
def test_a_node_has_what_is_not_reserved_for_the_system(fields: str, cpus: int, memory: int, host: str) -> None:
    (seen,) = slurm_nodes(records_of_key(f"{NODE}{fields} OS=Linux 6.1 #1 SMP", "NodeName"))
    assert (seen.node.cpus, seen.node.memory_mib, seen.host) == (cpus, memory, host)
    assert seen.node.os == "Linux 6.1"
    assert list(slurm_nodes(records_of_key("NodeName=(null) State=IDLE", "NodeName"))) == []


def test_the_cards_of_a_node_have_a_model_and_a_vendor() -> None:
    found = cards_of("gpu:mi250:1(S:0),gpu:MLU370:1,gpu:2,shard:8")
    assert [(each.model, each.vendor) for each in found.cards] == [
        ("mi250", CardVendor.ROCM),
        ("mlu370", CardVendor.MLU),
        ("gpu", CardVendor.NVIDIA),
        ("gpu", CardVendor.NVIDIA),
    ]
    assert [each.index for each in found.cards] == [0, 1, 2, 3]
    assert found.shards_per_card == 2
    assert cards_of("shard:8").shards_per_card == 0
    assert list(found.held("gpu:a:2(IDX:1,9)")) == [CardSlice(1, None), CardSlice(9, None)]


def with_cards(count: int, *in_use: CardSlice, shards: int = 0) -> SlurmNode:
    node = a_node("n1", card_list=tuple(a_card(index) for index in range(count)))
    numbered = tuple(CardSlice(index, None) for index in range(count))
    return SlurmNode(node, Cards(node.cards, numbered, shards), in_use)


def take(seen: SlurmNode, unattributed: placements.UnattributedGpus, milli: int, *models: str) -> list[tuple[int, int]]:
    wanted = NodeSpec(card_milli=milli, card_models=models)
    return [(each.card, each.milli) for each in unattributed.take(NodeName("n1"), seen.node, wanted)]


def test_a_job_that_is_not_listed_takes_cards_in_use_and_then_free_ones() -> None:
    seen = with_cards(4, CardSlice(1, None), CardSlice(3, None))
    unattributed = placements.UnattributedGpus([seen])
    assert take(seen, unattributed, 1000) == [(1, 1000)]
    assert take(seen, unattributed, 3000) == [(3, 1000), (0, 1000), (2, 1000)]
    assert take(seen, unattributed, 1000) == [], "no card is left"
    assert unattributed.others() == {}
    assert take(seen, placements.UnattributedGpus([seen]), 1000, "H100") == []
    rest = placements.UnattributedGpus([seen]).others()
    ((first,),) = rest[placements.OTHERS]
    assert [each.card for each in first.slices] == [1, 3]


def test_two_shares_fit_on_one_card_and_a_third_goes_to_the_next() -> None:
    seen = with_cards(2, shards=2)
    unattributed = placements.UnattributedGpus([seen])
    assert [take(seen, unattributed, 500) for _ in range(5)] == [[(0, 500)], [(0, 500)], [(1, 500)], [(1, 500)], []]
    (share,) = placements.UnattributedGpus([seen]).take(NodeName("n1"), seen.node, NodeSpec(card_milli=500))
    assert share == CardSlice(0, 0, 500), "shares are numbered once all jobs are placed"


@pytest.mark.parametrize(
    ("printed", "number"),
    [("12", 12), ("12K", 12_288), ("2m", 2 << 20), ("4G", 4), ("4-8", 4), ("1.5K", 1536), ("x", None), ("", None)],
)
def test_slurms_counts_have_units_of_two_kinds(printed: str, number: int | None) -> None:
    assert values.number(printed) == number


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [("2-12:30", 2 * 86_400 + 12 * 3600 + 30 * 60), ("1-02", 86_400 + 2 * 3600), ("0", 0), ("00:00:05.9", 5)],
)
def test_durations_of_days_and_hours(printed: str, seconds: int) -> None:
    assert values.seconds(printed) == seconds


def test_listed_allocations_are_read_by_job_task_and_node() -> None:
    text = (
        "JobId=9 ArrayJobId=7 ArrayTaskId=2 JobName=x\n"
        "     Nodes=n[1-2] CPU_IDs=0-3 Mem=2048 GRES=gpu:a100:1(IDX:1)\n"
        "\nJobId=8 JobName=y\n     Nodes=n1 CPU_IDs=4 Mem=1G GRES=\n\nJobId=6 JobName=z\n"
    )
    gres = {NodeName("n1"): with_cards(2).gres}
    found = placements.details(placements.allocation_records(text), gres)
    task = next(job for job in found if job != 8)
    assert set(found) == {task, 8}
    assert [(part.node, part.cpus, part.memory_mib) for part in found[task].values()] == [
        ("n1", 4, 2048),
        ("n2", 4, 2048),
    ]
    assert found[JobId(8)][NodeName("n1")].memory_mib == 1024


def test_a_job_of_a_list_without_user_ids_keeps_its_users_name() -> None:
    assert jobparts.submitter({"UserName": "ann", "UserID": "1001", "GroupID": "100"}).uid == 1001
    unknown = jobparts.submitter({"UserName": "ann"})
    assert (unknown.name, unknown.uid, unknown.gid) == ("ann", 0, 0)


def test_the_heading_that_sacct_prints_is_no_job() -> None:
    printed = "JobID|State|\n7|COMPLETED|\n8|State|\n"
    assert list(accounting.read(printed, "|", ("JobID", "State"))) == [
        {"JobID": "7", "State": "COMPLETED"},
        {"JobID": "8", "State": "State"},
    ]
