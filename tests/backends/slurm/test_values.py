from __future__ import annotations

import pytest

from cockpit.backends.slurm.entering import command
from cockpit.backends.slurm.mapping import accounting, values
from cockpit.backends.slurm.mapping.accounting import FIELDS, ended_jobs
from cockpit.backends.slurm.mapping.holding import held
from cockpit.backends.slurm.mapping.jobparts import Conditions, conditions
from cockpit.backends.slurm.mapping.jobs import Listed, find_job
from cockpit.backends.slurm.mapping.listing import FIELDS as LISTED
from cockpit.backends.slurm.mapping.listing import read, unknown_field
from cockpit.backends.slurm.mapping.nodes import node_state, slurm_nodes
from cockpit.backends.slurm.mapping.reasons import reason
from cockpit.backends.slurm.mapping.records import words
from cockpit.backends.slurm.mapping.values import hosts, numbers
from cockpit.backends.slurm.rows import row
from cockpit.model.asking import ShellRequest
from cockpit.model.attempt import EndCause, ExitStatus
from cockpit.model.ids import JobId, index_ranges, job_words, rest_id, task_id, task_of
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from cockpit.model.reasons import SchedulerReason
from cockpit.model.spec import Access, Dependency, DependencyKind, HoldAllocation
from tests.hostile import HOSTILE


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [
        ("1-02:03:04", 93_784),
        ("02:03:04", 7_384),
        ("3:04", 184),
        ("30 sec", 30),
        ("7-0", 604_800),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_durations(printed: str, seconds: int | None) -> None:
    assert values.seconds(printed) == seconds


def test_amounts_and_times() -> None:
    assert values.tres("cpu=4,mem=8G,gres/gpu:a100=4,billing=46") == {
        "cpu": 4, "mem": 8192, "gres/gpu:a100": 4, "billing": 46
    }  # fmt: skip
    assert values.memory_mib("500M") == 500
    assert [values.memory_mib(f"2{unit}") for unit in "MGTP"] == [2 * 1024**power for power in range(4)]
    assert values.memory_mib("512K") == 0
    assert values.memory_mib("2048K") == 2
    assert values.moment("1795248117", None) == 1_795_248_117_000
    assert values.moment("N/A", None) is None


@pytest.mark.parametrize(
    ("printed", "names"),
    [
        ("n[1-3,07],login", ("n1", "n2", "n3", "n07", "login")),
        ("a[1-2]b[01-02]", ("a1b01", "a1b02", "a2b01", "a2b02")),
        ("", ()),
        ("n[08-10]", ("n08", "n09", "n10")),
    ],
)
def test_hosts(printed: str, names: tuple[str, ...]) -> None:
    assert hosts(printed) == names


def test_a_list_of_hosts_without_end_is_cut() -> None:
    assert len(hosts("n[0-999999999]")) == 1 << 16


def test_numbers_there_and_back() -> None:
    assert numbers("0-3,8,10-12") == (0, 1, 2, 3, 8, 10, 11, 12)
    assert index_ranges(numbers("0-3,8,10-12")) == "0-3,8,10-12"
    assert numbers("0-8:4") == (0, 4, 8)


def test_a_task_has_one_id_that_encodes_its_array() -> None:
    assert task_of(task_id(46, 9)) == (46, 9)
    assert job_words(task_id(46, 0)) == "46_0"
    assert task_of(4711) == (4711, None)
    assert task_id(0x3FFFFFF, 4_000_000) < 1 << 53


def test_conditions_that_are_open_and_that_failed() -> None:
    assert conditions("afterok:47(unfulfilled),afterany:5_*(failed),singleton") == Conditions(
        (Dependency(DependencyKind.AFTER_OK, JobId(47)), Dependency(DependencyKind.SINGLETON)),
        (Dependency(DependencyKind.AFTER_ANY, JobId(5)),),
    )


@pytest.mark.parametrize(
    ("printed", "state"),
    [
        ("IDLE", NodeState.UP),
        ("MIXED+PLANNED", NodeState.UP),
        ("IDLE+DRAIN", NodeState.DRAINED),
        ("DOWN*", NodeState.DOWN),
        ("IDLE*", NodeState.DOWN),
        ("DOWN+NOT_RESPONDING", NodeState.DOWN),
        ("SOMETHING_NEW", NodeState.UP),
    ],
)
@pytest.mark.req("SL-11")
def test_states_of_nodes(printed: str, state: NodeState) -> None:
    assert node_state(printed) is state


def test_a_drained_node_shows_the_user_and_the_reason() -> None:
    line = "NodeName=n9 CPUTot=4 RealMemory=1000 Gres=gpu:A100:2,shard:8 State=IDLE+DRAIN Reason=bad disk [root@now]"
    (find_job,) = slurm_nodes([words(line)])
    assert (find_job.node.state_reason, find_job.gres.shards_per_card) == ("bad disk [root@now]", 4)
    assert [card.model for card in find_job.node.cards] == ["a100", "a100"]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("UNKNOWN+NOT_RESPONDING", "not responding"),
        ("DOWN*", "not responding"),
        ("IDLE+DRAIN", ""),
        ("DOWN", ""),
        ("IDLE+MAINT+DRAIN", "maint"),
        ("IDLE+CLOUD+POWERED_DOWN", "powered down"),
    ],
)
@pytest.mark.req("SL-11")
def test_a_node_out_of_service_repeats_no_part_of_its_state(state: str, told: str) -> None:
    (find_job,) = slurm_nodes([words(f"NodeName=n9 CPUTot=4 RealMemory=1000 State={state}")])
    assert find_job.node.state_reason == told


def test_a_node_that_is_up_shows_its_additional_flags() -> None:
    (planned,) = slurm_nodes([words("NodeName=n9 CPUTot=4 RealMemory=1000 State=MIXED+PLANNED")])
    (idle,) = slurm_nodes([words("NodeName=n9 CPUTot=4 RealMemory=1000 State=IDLE")])
    assert (planned.node.state_reason, idle.node.state_reason) == ("planned", "")


def a_record(**other: str) -> dict[str, str]:
    plain = dict.fromkeys(LISTED, "")
    told = {"JobID": "7", "NumNodes": "1", "NumCPUs": "1", "State": "PENDING", "UserName": "ann", "UserID": "1000"}
    return plain | told | {"TimeLimit": "1:00:00", "SubmitTime": "2026-11-21T08:00:00"} | other


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.req("TR-05")
def test_no_job_name_shifts_the_fields_of_a_record(hostile: str) -> None:
    record = a_record(Name=hostile + "\nJobId=1 UserId=root(0)|", Comment=hostile)
    printed = "".join(f"{value}~s~" for value in record.values()) + "\n"
    assert list(read(printed * 3, "~s~")) == [record] * 3


@pytest.mark.req("SL-02", "TR-04")
def test_truncated_parts_are_omitted() -> None:
    printed = "".join(f"{value}~s~" for value in a_record().values()) + "\n"
    assert len(list(read(printed + printed[:40], "~s~"))) == 1
    assert list(read("slurm is having a bad day", "~s~")) == []


@pytest.mark.req("SL-02")
def test_unknown_words_are_kept() -> None:
    find_job = Listed(a_record(State="HIBERNATING"), None)
    assert reason(find_job) == SchedulerReason("HIBERNATING", "a state that cockpit does not know")
    waiting = Listed(a_record(Reason="SomethingOfTomorrow"), None)
    assert reason(waiting) == SchedulerReason("SomethingOfTomorrow")
    assert unknown_field("squeue: error: Invalid job format specification: STDOUT\n") == "STDOUT"


@pytest.mark.parametrize(
    ("state", "code", "shown", "cause"),
    [
        ("COMPLETED", "0", JobState.SUCCEEDED, EndCause.EXIT),
        ("FAILED", "768", JobState.ERROR, EndCause.EXIT),
        ("TIMEOUT", "15", JobState.EXPIRED, EndCause.TIME_LIMIT),
        ("CANCELLED", "0", JobState.STOPPED, EndCause.STOP),
        ("PREEMPTED", "0", JobState.STOPPED, EndCause.PREEMPTED),
        ("NODE_FAIL", "0", JobState.ERROR, EndCause.LOST),
        ("OUT_OF_MEMORY", "125", JobState.ERROR, EndCause.EXIT),
    ],
)
def test_how_jobs_end(state: str, code: str, shown: JobState, cause: EndCause) -> None:
    find_job = Listed(a_record(State=state, exit_code=code, EndTime="2026-11-21T09:00:00"), None)
    assert (find_job.job.state, find_job.job.end_cause) == (shown, cause)
    assert find_job.job.exit is not None
    assert find_job.job.exit.oom is (state == "OUT_OF_MEMORY")
    assert (find_job.job.exit.code == 3) is (state == "FAILED")


@pytest.mark.req("SL-23")
def test_a_comment_of_the_wrapper_makes_a_running_job_a_held_one() -> None:
    running = a_record(State="RUNNING", NodeList="n1", StartTime="2026-11-21T08:00:01")
    find_job = Listed(running | {"Comment": "cockpit:held rc=3 until=1795248117"}, None)
    assert (find_job.job.state, find_job.job.held_until) == (JobState.ERROR, 1_795_248_117_000)
    assert find_job.job.exit is not None
    assert find_job.job.exit.code == 3
    other = Listed(running | {"Comment": "cockpit:held rc=3 until=soon; rm -rf /"}, None)
    assert other.job.state is JobState.RUNNING
    assert held(other.job, "") is other.job


@pytest.mark.req("SL-23")
@pytest.mark.parametrize(
    ("comment", "terminal", "allocation"),
    [
        ("", False, None),
        ("somebody's own words", False, None),
        ("cockpit:wrapped", True, HoldAllocation.KEEP),
        ("cockpit:contained rc=3 node=n1 with=apptainer kept=/out/overlay image=docker://a", True, HoldAllocation.FREE),
    ],
)
def test_a_job_with_cockpits_wrapper_has_a_terminal_and_a_hold(
    comment: str, terminal: bool, allocation: HoldAllocation | None
) -> None:
    plain = Listed(a_record(State="RUNNING", NodeList="n1", StartTime="2026-11-21T08:00:01"), None).job
    spec = held(plain, comment).spec
    assert spec.terminal == terminal
    assert (spec.debug_hold and spec.debug_hold.allocation) == allocation


@pytest.mark.req("SL-23")
@pytest.mark.parametrize("said", ["held rc=3 until=1795248117", "released rc=3"])
def test_a_hold_that_was_cancelled_keeps_the_commands_exit_code(said: str) -> None:
    """Slurm's own exit code is that of the cancel."""
    times = {"StartTime": "2026-11-21T08:00:01", "EndTime": "2026-11-21T08:05:00"}
    record = a_record(State="CANCELLED", exit_code="15", NodeList="n1", Comment=f"cockpit:{said}", **times)
    find_job = Listed(record, None).job
    assert (find_job.state, find_job.exit) == (JobState.STOPPED, ExitStatus(code=3))
    assert row(Listed(record, None), None, None, Access.RW).exit_code == 3


@pytest.mark.req("SL-22")
def test_a_shell_begins_in_the_jobs_working_folder() -> None:
    running = a_record(State="RUNNING", NodeList="n1", StartTime="2026-11-21T08:00:01")
    request = ShellRequest(job=JobId(7), command=("pwd",))
    assert "--chdir=/data/a b" in command(Listed(running, None).job, "/data/a b", request)
    assert not [word for word in command(Listed(running, None).job, "", request) if word.startswith("--chdir")]


def test_text_of_users_in_records_hides_no_key_before_it() -> None:
    record = words("JobId=7 JobName=x WorkDir=/home JobName=y\n   StdOut=/a b/c")
    assert (record["JobName"], record["StdOut"]) == ("x", "/a b/c")


def test_an_accounting_of_a_job_and_its_steps() -> None:
    job = dict.fromkeys(FIELDS, "") | {
        "JobID": "9_2", "JobIDRaw": "11", "JobName": "a", "State": "FAILED", "ExitCode": "3:0", "NNodes": "1",
        "Start": "2026-11-21T08:00:00", "End": "2026-11-21T08:01:00", "NodeList": "n1", "AllocTRES": "cpu=2,gres/gpu=1",
        "TotalCPU": "01:02.500", "Submit": "2026-11-21T07:00:00", "TimelimitRaw": "90",
    }  # fmt: skip
    step = dict.fromkeys(FIELDS, "") | {"JobID": "9_2.batch", "State": "FAILED", "MaxRSS": "2048K"}
    printed = "".join("".join(f"{value}~" for value in each.values()) + "\n" for each in (job, step))
    ((find_job, used, _),) = ended_jobs(accounting.read(printed, "~"), None)
    assert (find_job.id, used.cpu_ms, used.peak_memory_mib) == (task_id(9, 2), 62_500, 2)
    assert find_job.spec.time_limit_seconds == 5400


@pytest.mark.req("SL-10")
def test_twenty_thousand_tasks_that_wait_are_one_record_until_one_is_looked_at() -> None:
    listed = Listed(a_record(JobID="7", ArrayJobID="7", ArrayTaskID="0-19999%5"), None)
    assert (listed.id, len(listed.tasks), listed.words) == (rest_id(7), 20_000, "7_[0-19999]")
    looked_at = find_job([listed], task_id(7, 12_345))
    assert looked_at is not None
    assert (looked_at.job.id, looked_at.alike) == (task_id(7, 12_345), task_id(7, 0))
    assert looked_at.job.array is not None
    assert (looked_at.job.array.index, looked_at.job.array.at_once) == (12_345, 5)
    assert find_job([listed], task_id(7, 20_000)) is None
    assert len(list(listed.each(1000))) == 1000


@pytest.mark.req("SL-02")
@pytest.mark.parametrize(
    ("told", "whole"),
    [
        ({"OverSubscribe": "NO"}, True),
        ({"OverSubscribe": "OK"}, False),
        ({"OverSubscribe": "NO", "Exclusive": "N/A"}, True),
        ({"OverSubscribe": "NO", "Exclusive": "NO"}, False),
        ({"OverSubscribe": "NO", "Exclusive": "USER"}, False),
        ({"OverSubscribe": "NO", "Exclusive": "NODE"}, True),
        ({"OverSubscribe": "NO", "Exclusive": "TOPO"}, True),
    ],
)
def test_whole_nodes_are_read_from_another_field_since_26_05(told: dict[str, str], whole: bool) -> None:
    """As 22.05 and 26.05 print a job with and without --exclusive[=user|topo]."""
    assert Listed(a_record(Exclusive="") | told, None).job.spec.exclusive is whole
