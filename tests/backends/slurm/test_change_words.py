"""The words of scontrol and sacctmgr for every change, and of sacct for ended jobs."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping import accounting, acts
from cockpit.backends.slurm.mapping.acts import NotPossible
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.model import accountchange as change
from cockpit.model.cluster import Reservation
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.spec import Array, Dependency, DependencyKind, Mode, NodeSpec
from cockpit.protocol import messages
from tests.backends.slurm.test_values import a_record

pytestmark = pytest.mark.req("SL-20")
BEGIN = Millis(1_795_248_117_000)


def a_job(**fields: str) -> Any:
    return Listed(a_record(**{"JobID": "7", "State": "PENDING", "Name": "train", **fields})).job


def edited(job: Any, **fields: Any) -> list[str]:
    return [shlex.join(each.argv) for each in acts.edit(job, replace(job.spec, **fields), (22, 5, 8))]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "other"}, "JobName=other"),
        ({"partitions": ("gpu", "batch")}, "Partition=gpu,batch"),
        ({"account": "nlp"}, "Account=nlp"),
        ({"qos": "high"}, "QOS=high"),
        ({"time_limit_seconds": 5400}, "TimeLimit=01:30:00"),
        ({"dependencies": (Dependency(DependencyKind.AFTER_OK, JobId(4)),)}, "Dependency=afterok:4"),
        ({"reservation": "maint"}, "ReservationName=maint"),
        ({"node_names": ("n1", "n2")}, "ReqNodeList=n1,n2"),
        ({"nice": -3}, "Nice=-3"),
        ({"begin_at": BEGIN}, "StartTime=uts1795248117"),
        ({"deadline_at": BEGIN}, "Deadline=uts1795248117"),
        ({"exclusive": True}, "OverSubscribe=no"),
        ({"specs": (NodeSpec(cpus=1, memory_mib=2048),)}, "MinMemoryNode=2048"),
        ({"nodes": 3, "mode": Mode.SLURM}, "NumNodes=3 NumCPUs=3"),
    ],
)
def test_every_field_that_slurm_changes_is_one_setting(fields: dict[str, Any], words: str) -> None:
    job = a_job()
    if "specs" not in fields and "nodes" not in fields:
        assert edited(job, **fields) == [f"scontrol update JobId=7 {words}"]
    else:
        (line,) = edited(job, **fields)
        assert set(words.split()) <= set(line.split())


def test_a_begin_that_is_taken_away_is_now_and_one_that_stays_is_not_sent() -> None:
    job = a_job()
    begins = replace(job, spec=replace(job.spec, begin_at=BEGIN))
    assert edited(begins, begin_at=None) == ["scontrol update JobId=7 StartTime=now"]
    assert edited(begins, nice=1) == ["scontrol update JobId=7 Nice=1"]
    both = edited(job, name="b c", nice=1)
    assert both == ["scontrol update JobId=7 'JobName=b c' Nice=1"]


def test_how_many_tasks_run_at_once_is_changed_for_the_whole_array() -> None:
    job = Listed(a_record(JobID="7", ArrayJobID="7", ArrayTaskID="0-3%2", State="PENDING")).job
    assert job.array is not None
    array = Array((0, 1, 2, 3), job.array.at_once)
    job = replace(job, spec=replace(job.spec, array=array))
    (line,) = edited(job, array=replace(array, at_once=5))
    assert line == "scontrol update JobId=7 ArrayTaskThrottle=5"
    first, second = edited(job, array=replace(array, at_once=5), nice=2)
    assert (first.split()[-1], second) == ("Nice=2", line)
    with pytest.raises(NotPossible, match="Slurm changes no array"):
        edited(job, array=replace(array, indices=(0, 1)))
    with pytest.raises(NotPossible, match="The edit changes nothing"):
        edited(job, array=replace(array, indices=(3, 2, 1, 0)))


def test_a_hold_and_several_fixed_fields_are_refused_by_name() -> None:
    with pytest.raises(NotPossible, match="an edit does not hold a job"):
        edited(a_job(), hold=True)
    with pytest.raises(NotPossible, match="Slurm changes no labels and no pool of a job that waits"):
        edited(a_job(), pool="x", labels={"a": "b"})


def test_a_grace_period_of_ones_own_is_refused() -> None:
    with pytest.raises(NotPossible, match="Slurm kills after its own KillWait"):
        acts.cancel(messages.CancelArgs(7, 5))
    assert acts.cancel(messages.CancelArgs(7, None, 3)).argv == ("scancel", "7_3")
    assert acts.cancel(messages.CancelArgs(7, 0, 3)).argv[-1] == "7_3"


def test_a_drained_node_keeps_its_jobs_and_comes_back() -> None:
    with pytest.raises(NotPossible, match="within: Slurm lets jobs keep running on a drained node"):
        acts.drain_node(messages.DrainArgs("n1", "disk", 60))
    assert acts.resume_node(messages.NameArgs("n1")).argv == ("scontrol", "update", "NodeName=n1", "State=RESUME")


@pytest.mark.parametrize(
    ("fields", "who"),
    [
        ({"users": ("ann", "bob")}, ["Users=ann,bob"]),
        ({"accounts": ("nlp",)}, ["Accounts=nlp"]),
        ({"users": ("ann",), "accounts": ("nlp", "cv")}, ["Users=ann", "Accounts=nlp,cv"]),
        ({"maintenance": True}, ["Users=root", "Flags=MAINT,IGNORE_JOBS"]),
        ({}, ["Users=root"]),
    ],
)
def test_a_reservation_names_its_users_nodes_and_times(fields: dict[str, Any], who: list[str]) -> None:
    nodes = (NodeName("n1"), NodeName("n2"))
    wanted = Reservation(name="maint", nodes=nodes, start_at=BEGIN, end_at=BEGIN + 60_000, **fields)
    times = ["StartTime=uts1795248117", "EndTime=uts1795248177"]
    head = ["scontrol", "create", "reservation", "ReservationName=maint"]
    assert list(acts.make_reservation(wanted).argv) == [*head, *times, "Nodes=n1,n2", *who]


LIMITS = change.AssociationChange(limits=change.LimitsChange(max_jobs=3))


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (change.AddAccount("nlp", change.AssociationChange(parent="root")), "add account nlp Parent=root"),
        (change.ModifyAccount("nlp", LIMITS), "modify account where name=nlp set MaxJobs=3"),
        (change.AddQos("high", change.QosChange(priority=5)), "add qos high Priority=5"),
        (change.RemoveQos("high"), "delete qos where name=high"),
        (change.AddUser("ann", "nlp", "gpu", LIMITS), "add user ann Accounts=nlp Partition=gpu MaxJobs=3"),
        (change.RemoveUser("ann", "nlp", "gpu"), "delete user where name=ann account=nlp Partition=gpu"),
        (change.RemoveUser("ann"), "delete user where name=ann"),
        (change.ModifyUser("ann", LIMITS), "modify user where name=ann set MaxJobs=3"),
        (
            change.ModifyUser("ann", change.AssociationChange(default=True), "nlp"),
            "modify user where name=ann account=nlp set DefaultAccount=nlp",
        ),
        (change.RemoveCoordinators("nlp", ("ann",)), "delete coordinator Accounts=nlp Names=ann"),
    ],
)
def test_every_change_of_accounts_is_one_command(wanted: change.AccountChange, line: str) -> None:
    assert shlex.join(acts.command(wanted)) == f"sacctmgr --immediate --quiet {line}"


@pytest.mark.parametrize(
    ("argv", "qos"),
    [
        (("scontrol", "update", "JobId=7", "QOS=high"), "high"),
        (("sbatch", "--qos=low", "--qos=x"), "low"),
        (("sbatch", "-q", "x"), ""),
    ],
)
def test_the_qos_of_a_command_is_found_in_its_words(argv: tuple[str, ...], qos: str) -> None:
    assert acts.wanted_qos(acts.Command(argv)) == qos


def past(**fields: str) -> dict[str, str]:
    plain = dict.fromkeys(accounting.FIELDS_OF_ONE, "")
    told = {"JobID": "7", "JobIDRaw": "7", "State": "COMPLETED", "NNodes": "1", "UID": "1000", "GID": "1000"}
    times = {"Submit": "1795248000", "Start": "1795248010", "End": "1795248110", "TimelimitRaw": "90"}
    return plain | told | times | {"ExitCode": "0:0", "NodeList": "n1", "AllocTRES": "cpu=2,mem=1G,node=1"} | fields


def step(name: str, **fields: str) -> dict[str, str]:
    return past(JobID=f"7.{name}", **fields)


def test_the_use_of_an_ended_job_is_that_of_its_steps() -> None:
    records = [
        past(TotalCPU=""),
        step("batch", TotalCPU="00:01.500", MaxRSS="2048K", TRESUsageInAve="cpu=1,gres/gpuutil=40"),
        step("0", TotalCPU="00:09", MaxRSS="1024K"),
        past(JobID="8", JobIDRaw="8", TotalCPU="01:00", State="RUNNING"),
        step("0", MaxRSS="9G"),
        past(JobID="9", JobIDRaw="9", TotalCPU="1-00:00:00", State="HIBERNATING"),
        past(JobID="10", JobIDRaw="10", TotalCPU="00:00.000"),
    ]
    first, last = accounting.ended_jobs(records, None)
    assert (first.job.id, first.used.cpu_ms, first.used.peak_memory_mib, first.used.card_percent) == (7, 1500, 2, 40)
    assert (last.job.id, last.used.cpu_ms, last.used.peak_memory_mib) == (10, None, None)
    assert first.job.spec.time_limit_seconds == 90 * 60


def test_of_several_runs_the_last_counts_and_of_an_array_the_first_task() -> None:
    runs = [past(JobID="7", ExitCode="1:0", State="FAILED"), step("0"), past(JobID="7"), step("1")]
    found, steps = accounting.of_one(runs, "7", None)
    assert found is not None
    assert (found.job.state, [each.name for each in steps]) == ("succeeded", ["1"])
    array = [past(JobID="7_1", JobIDRaw="9"), past(JobID="7_2", JobIDRaw="7")]
    for number, raw in (("7", 1), ("7_2", 2), ("9", 1), ("100", 2)):
        found, _ = accounting.of_one(array, number, None)
        assert found is not None
        assert found.job.array is not None
        assert found.job.array.index == raw
    assert accounting.of_one([step("0")], "7", None) == (None, ())


def test_the_cards_of_an_ended_job_are_as_many_as_it_had_on_each_node() -> None:
    (found,) = accounting.ended_jobs([past(AllocTRES="cpu=2,mem=1G,node=1,gres/gpu=2")], None)
    assert found.job.attempt is not None
    (part,) = accounting.with_amounts(found.job).attempt.placement
    assert [(each.card, each.slot) for each in part.slices] == [(0, None), (1, None)]
    half = replace(found.job, spec=replace(found.job.spec, specs=(NodeSpec(card_milli=1500),)))
    (part,) = accounting.with_amounts(half).attempt.placement
    assert part.card_milli == 1500
    (none,) = accounting.ended_jobs([past()], None)
    assert accounting.with_amounts(none.job) is none.job


def test_a_step_without_an_end_has_no_exit_code_and_steps_are_listed_once() -> None:
    ended, runs = accounting._step(step("0", NTasks="4"), None), accounting._step(step("1", End="Unknown"), None)
    assert (ended.exit_code, ended.tasks, ended.nodes, ended.peak_memory_mib) == (0, 4, 1, None)
    assert (runs.exit_code, runs.ended_at) == (None, None)
    again = replace(ended, state="running")
    assert accounting.beside([ended], [again, runs]) == (ended, runs)
