"""The order of the queue, the jobs ahead, and the figures that Slurm itself has of accounts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.overviews import overview_of
from cockpit.backends.slurm import ranking
from cockpit.backends.slurm.list_checks import ListComparison, _fewer, is_doubtful, left_out, live_jobs
from cockpit.backends.slurm.mapping.accounts import ShareLine
from cockpit.backends.slurm.mapping.cluster import PLANNED_TASKS
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.rows import Rows, explanation, holdings, task_row
from cockpit.backends.slurm.wire.calls import Printed
from cockpit.errors import Unreachable
from cockpit.model.accounts import Association, assoc_key
from cockpit.model.cluster import Cluster, Partition
from cockpit.model.ids import JobId, Millis, rest_id, task_id
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.model.reasons import Held, SchedulerReason
from cockpit.model.spec import Access
from cockpit.model.view import AccountRow, AccountsShown
from tests.backends.slurm.test_values import a_record
from tests.builders import a_node

pytestmark = pytest.mark.req("SL-10", "SL-12")
WAITS = {"State": "PENDING", "Reason": "Priority", "Partition": "batch", "Account": "nlp", "PriorityLong": "10"}
RUNS = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00", "Partition": "batch"}
AT = {second: f"2026-11-21T08:00:0{second}" for second in range(10)}


def rows_of(*records: dict[str, str], user: str = "ann", admin: bool = False) -> dict[JobId, JobRow]:
    made = Rows(user)
    made.admin = admin
    return made.of([Listed(a_record(**each)) for each in records], {}, Millis(0))


def waiting(job: int, **fields: str) -> dict[str, str]:
    return {**WAITS, "JobID": str(job), **fields}


def array(job: int, tasks: str, **fields: str) -> dict[str, str]:
    return waiting(job, ArrayJobID=str(job), ArrayTaskID=tasks, **fields)


def test_jobs_ahead_have_a_higher_priority_or_the_same_and_were_submitted_earlier() -> None:
    rows = rows_of(
        waiting(1, PriorityLong="20", SubmitTime=AT[5]),
        waiting(2, SubmitTime=AT[1]),
        waiting(3, SubmitTime=AT[2]),
        waiting(4, SubmitTime=AT[3]),
        waiting(5, PriorityLong="30", Partition="gpu"),
        waiting(6, PriorityLong="0"),
        waiting(7, PriorityLong="15", Partition="gpu,batch"),
        {**RUNS, "JobID": "8", "PriorityLong": "99"},
        array(9, "0-4", PriorityLong="12"),
    )
    found = explanation(rows[JobId(3)], rows)
    assert found is not None
    assert found.ahead == (1, 7, rest_id(9), 2)
    assert found.position == 1 + 3 + 5
    assert found.reason == SchedulerReason("Priority")
    last = explanation(rows[JobId(6)], rows)
    assert last is not None
    assert last.position == len(found.ahead) + 4 + 2 + 1
    assert explanation(rows[JobId(8)], rows) is None


def test_an_array_is_not_ahead_of_its_own_tasks() -> None:
    rows = rows_of(array(9, "0-4", PriorityLong="12"), array(10, "1-2", PriorityLong="20"))
    task = replace(rows[rest_id(9)], id=task_id(9, 3), tasks=(), priority=1)
    found = explanation(task, rows)
    assert found is not None
    assert found.ahead == (rest_id(10),)


def test_the_row_of_a_task_is_its_arrays_with_its_own_id() -> None:
    each = Listed(a_record(**array(9, "0-4")))
    row = rows_of(array(9, "0-4"))[rest_id(9)]
    assert task_row(row, each.job) is row
    task = task_row(row, each.task(3))
    assert (task.id, task.tasks, task.array) == (task_id(9, 3), (), each.task(3).array)


def test_the_header_counts_tasks_and_what_running_jobs_use() -> None:
    size = {"NumCPUs": "4", "tres-alloc": "cpu=4,mem=2G,node=1,billing=4"}
    rows = rows_of(
        array(9, "0-4"),
        {**RUNS, **size, "JobID": "1"},
        {**RUNS, **size, "JobID": "2", "State": "SUSPENDED"},
        {**RUNS, **size, "JobID": "3", "Comment": "cockpit:held rc=3 until=1795248117"},
    )
    found = overview_of("lab", rows.values(), [a_node(cpus=64, memory_mib=1000, cards=2), a_node("n2", cpus=32)])
    assert found.jobs_by_state["queued"] == 5
    assert (found.held, found.nodes, found.cpus, found.card_milli) == (1, 2, 96, 2000)
    held = [row for row in rows.values() if row.state is not JobState.QUEUED]
    assert found.used_memory_mib == sum(row.memory_mib for row in held if row.id != 3) > 0
    assert found.used_cpus == 4, "a suspended job keeps its memory, but uses no CPUs"


def test_named_jobs_have_their_sizes_once() -> None:
    rows = rows_of(waiting(1, Name="a"), {**RUNS, "JobID": "2", "Name": "b"}, waiting(3))
    named = list(holdings([JobId(2), JobId(1), JobId(2), JobId(3), JobId(4)], rows, {JobId(3)}))
    assert [(each.job, each.name, each.running) for each in named] == [(2, "b", True), (1, "a", False)]


def test_a_user_may_change_their_own_jobs_and_an_administrator_all() -> None:
    records = waiting(1, UserName="ann"), waiting(2, UserName="bob")
    assert [row.may for row in rows_of(*records).values()] == [Access.RW, Access.RO]
    assert [row.may for row in rows_of(*records, admin=True).values()] == [Access.RW, Access.RW]


def breakdown(job: int, partition: str, total: int, *parts: Part) -> Breakdown:
    return Breakdown(JobId(job), partition, total, parts)


AGE = Part(FactorName.AGE, 0.5, 10, 5.0)
NONE = Part(FactorName.AGE, 0.0, 10, 0.0)


def test_positions_count_tasks_and_leave_out_held_jobs() -> None:
    rows = rows_of(
        waiting(1, SubmitTime=AT[1]),
        array(2, "0-4", SubmitTime=AT[2]),
        waiting(3, SubmitTime=AT[3], Reason="JobHeldUser"),
        waiting(4, SubmitTime=AT[4], Partition="gpu,batch"),
        waiting(5, SubmitTime=AT[5], PriorityLong="7"),
        {**RUNS, "JobID": "6"},
    )
    printed = {
        1: (breakdown(1, "batch", 30, AGE),),
        2: (breakdown(2, "batch", 40, AGE),),
        3: (breakdown(3, "batch", 99, AGE),),
        4: (breakdown(4, "gpu", 9, AGE), breakdown(4, "batch", 50, NONE)),
    }
    tiers = (Partition(name="gpu", priority_tier=5), Partition(name="batch", priority_tier=1))
    shown = ranking.priorities(rows.values(), printed, Cluster(partitions=tiers)).rows
    assert [(row.job, row.partition, row.position) for row in shown] == [
        (4, "gpu", 1),
        (4, "batch", 1),
        (rest_id(2), "batch", 2),
        (1, "batch", 7),
        (5, "batch", 8),
        (3, "batch", None),
    ]
    by_row = {(row.job, row.partition): row for row in shown}
    assert isinstance(by_row[3, "batch"].uncounted, Held)
    assert by_row[3, "batch"].breakdown == Breakdown(JobId(3), "batch", 10, ())
    assert by_row[5, "batch"].breakdown == Breakdown(JobId(5), "batch", 7, ())
    assert by_row[5, "batch"].uncounted == SchedulerReason("Priority")
    assert by_row[4, "batch"].breakdown == Breakdown(JobId(4), "batch", 50, (), direct=True)
    assert by_row[4, "batch"].uncounted is by_row[1, "batch"].uncounted is None
    assert by_row[rest_id(2), "batch"].breakdown == Breakdown(rest_id(2), "batch", 40, (AGE,))


def test_a_job_without_priority_and_partition_has_none() -> None:
    (row,) = rows_of(waiting(1, PriorityLong="", Partition="")).values()
    (shown,) = ranking.priorities([replace(row, priority=None)], {}, Cluster()).rows
    assert shown.breakdown == Breakdown(JobId(1), "", 0, ())
    nothing = {1: (breakdown(1, "batch", 0, NONE),)}
    (shown,) = ranking.priorities([row], nothing, Cluster()).rows
    assert shown.breakdown == breakdown(1, "batch", 0, NONE), "nothing was set by hand"


def test_the_site_factor_of_a_job_comes_from_sprio() -> None:
    site = Part(FactorName.SITE, 1.0, 1, -5.0)
    printed = {1: (breakdown(1, "batch", 9, AGE, site),), 2: (breakdown(2, "batch", 9, AGE),)}
    assert ranking.site_factors(printed) == {1: -5}
    assert ranking.printed_of(task_id(1, 3), printed) == printed[1]
    assert ranking.printed_of(3, printed) == ()


def account_row(account: str, user: str = "", parent: str = "", queued: int = 1) -> AccountRow:
    return AccountRow(Association(account=account, user=user, parent=parent), 0, 1.0, queued, 0)


TREE = AccountsShown(
    (
        account_row("root"),
        account_row("nlp", parent="root"),
        account_row("nlp-a", parent="nlp"),
        account_row("nlp-a", "ann"),
        account_row("nlp-a", "bob"),
    ),
    (),
)


def queued(shown: AccountsShown) -> list[int]:
    return [row.queued for row in shown.rows]


def test_every_task_and_component_is_counted_up_to_the_root() -> None:
    own = {"Account": "nlp-a", "UserName": "ann"}
    short, long = f"0-{PLANNED_TASKS - 1}", f"0-{PLANNED_TASKS + 2}"
    assert ranking.all_tasks_counted(TREE, [Listed(a_record(**array(1, short, **own)))]) is TREE
    found = ranking.all_tasks_counted(TREE, [Listed(a_record(**array(1, long, **own)))])
    assert queued(found) == [4, 4, 4, 4, 1]
    parts = [
        Listed(a_record(**waiting(7 + offset, HetJobID="7", HetJobOffset=str(offset), **own))) for offset in (0, 1)
    ]
    assert queued(ranking.all_tasks_counted(TREE, parts)) == [2, 2, 2, 2, 1]
    nobody = [Listed(a_record(**array(1, long, Account="", UserName="ann")))]
    assert queued(ranking.all_tasks_counted(TREE, nobody)) == [1, 1, 1, 1, 1]


def test_the_figures_of_sshare_replace_those_that_were_computed() -> None:
    line = ShareLine(assoc_key("nlp-a", "ann"), 2, "nlp", 7.0, 0.5, 0.25, 0.125, 0.75, 2.0, 1)
    found = ranking.shares_shown(TREE, [line]).rows
    assert found[:3] == TREE.rows[:3]
    row = found[3]
    assert (row.used, row.norm_shares, row.norm_usage, row.effective_usage) == (7.0, 0.5, 0.25, 0.125)
    assert (row.level_fs, row.fair_share, row.queued) == (2.0, 0.75, 1)


COUNTED_AT = 1_795_248_117
"""21 November 2026, 08:01:57 UTC."""


@pytest.mark.parametrize(
    ("records", "counted", "fewer"),
    [
        ([waiting(1)], 1, False),
        ([waiting(1)], 2, True),
        ([array(1, "0-4")], 5, False),
        ([array(1, "0-4")], 6, True),
        ([waiting(1, SubmitTime="2026-11-21T08:01:58")], 1, False),
        ([waiting(1, SubmitTime="2026-11-21T08:01:59")], 1, True),
        ([waiting(1, SubmitTime="")], 1, False),
        ([{**RUNS, "State": "COMPLETED", "EndTime": "2026-11-21T08:01:56"}], 1, False),
        ([{**RUNS, "State": "COMPLETED", "EndTime": "2026-11-21T08:01:55"}], 1, True),
        ([{**RUNS, "State": "COMPLETED", "EndTime": ""}], 1, True),
    ],
)
@pytest.mark.parametrize("running", [False, True])
def test_a_list_is_shorter_than_sdiags_count_of_the_same_second(
    records: list[dict[str, str]], counted: int, fewer: bool, running: bool
) -> None:
    pending, runs = (0, counted) if running else (counted, 0)
    text = (
        f"Job states ts:  Sat Nov 21 08:01:57 2026 ({COUNTED_AT})\nJobs pending:   {pending}\nJobs running:   {runs}\n"
    )
    assert _fewer([Listed(a_record(**each)) for each in records], text) is fewer


def test_without_a_count_no_list_is_shorter() -> None:
    assert not _fewer([], "sdiag: nothing\n")


class Statistics:
    """Answers sdiag with this count of pending jobs, or not at all."""

    def __init__(self, pending: int | None) -> None:
        self.pending, self.asked = pending, 0

    async def ask(self, argv: tuple[str, ...], _fresh_seconds: float) -> Printed:
        assert argv == ("sdiag",)
        self.asked += 1
        if self.pending is None:
            raise Unreachable("sdiag is for administrators")
        at = f"Job states ts:  Sat Nov 21 08:01:57 2026 ({COUNTED_AT})"
        return Printed(f"{at}\nJobs pending:   {self.pending}\nJobs running:   0\n", "", 0)


LIVE, OVER = waiting(1), {**RUNS, "JobID": "1", "State": "COMPLETED", "EndTime": "2026-11-21T08:01:00"}
CONFIG = {"MinJobAge": "300 sec"}


@pytest.mark.parametrize(
    ("records", "before", "elapsed", "pending", "config", "doubtful", "asked"),
    [
        ([], [LIVE], 299.0, 0, CONFIG, True, 0),
        ([], [LIVE], 300.0, 0, CONFIG, False, 0),
        ([], [LIVE], 1.0, 0, {}, False, 0),
        ([waiting(2)], [LIVE], 299.0, 0, CONFIG, True, 0),
        ([LIVE], [LIVE], 1.0, 9, CONFIG, False, 0),
        ([waiting(2)], [OVER], 1.0, 9, CONFIG, False, 0),
        ([], [OVER], 1.0, 1, CONFIG, True, 1),
        ([], [], 1.0, 1, CONFIG, True, 1),
        ([], [], 1.0, 0, CONFIG, False, 1),
        ([LIVE], [], 1.0, 2, CONFIG, True, 1),
        ([LIVE], [], 1.0, 1, CONFIG, False, 1),
        ([], [], 1.0, 1, {**CONFIG, "PrivateData": "accounts,jobs"}, False, 0),
        ([], [], 1.0, 1, {**CONFIG, "PrivateData": "accounts"}, True, 1),
        ([], [], 1.0, None, CONFIG, False, 1),
    ],
)
async def test_a_list_is_doubted_where_live_jobs_vanished_too_soon_or_more_are_counted(
    records: Any, before: Any, elapsed: float, pending: int | None, config: dict[str, str], doubtful: bool, asked: int
) -> None:
    def by_number(each: list[dict[str, str]]) -> dict[str, Listed]:
        return {one["JobID"]: Listed(a_record(**one)) for one in each}

    statistics: Any = Statistics(pending)
    look = ListComparison(by_number(records), by_number(before), elapsed)
    assert await is_doubtful(statistics, look, config) is doubtful
    assert statistics.asked == asked


def test_jobs_that_a_list_leaves_out_are_counted_and_one_is_named() -> None:
    assert "it leaves out 1 that scontrol has, job 7." in str(left_out({"7"}))
    assert "it leaves out 3 that scontrol has, job 9 for one." in str(left_out({"10", "9", "101"}))


async def test_live_jobs_are_those_that_scontrol_lists_and_that_have_not_ended() -> None:
    text = (
        "JobId=7 JobName=a\n   JobState=RUNNING Reason=None\n\n"
        "JobId=8 ArrayJobId=8 JobName=b\n   JobState=PENDING Reason=None\n\n"
        "JobId=9 JobName=c\n   JobState=COMPLETED Reason=None\n"
    )

    class Answers:
        async def ask_now(self, argv: tuple[str, ...]) -> Printed:
            assert argv == ("scontrol", "--all", "-d", "show", "job")
            return Printed(text, "", 0)

    answers: Any = Answers()
    assert await live_jobs(answers) == {"7", "8"}
