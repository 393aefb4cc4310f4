"""What the embedded scheduler is given of a Slurm cluster: jobs, tasks, components, priorities and limits."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping import accounts, cluster, priorities, reservations
from cockpit.backends.slurm.mapping.cluster import NEVER, PLANNED_TASKS, ClusterLists, components, state
from cockpit.backends.slurm.mapping.jobs import Listed, LookedUpJob, find_job
from cockpit.backends.slurm.mapping.records import records_of_key, with_header
from cockpit.backends.slurm.mirroring import planning_mirror
from cockpit.backends.slurm.why import _planned_id
from cockpit.model.accounts import Accounts, ResourceLimits
from cockpit.model.cluster import Cluster, Reservation, Weights
from cockpit.model.ids import JobId, Millis, rest_id, task_id
from cockpit.model.job import JobState
from cockpit.model.priority import FactorName
from cockpit.runtime.clock import VirtualClock
from tests.backends.slurm.test_values import a_record

pytestmark = pytest.mark.req("SL-14", "SL-12")
WAITS = {"State": "PENDING", "PriorityLong": "50", "Partition": "batch"}


def listed(*records: dict[str, str]) -> tuple[Listed, ...]:
    return tuple(Listed(a_record(**WAITS | each)) for each in records)


def lists(*records: dict[str, str], **fields: Any) -> ClusterLists:
    return ClusterLists(Millis(9), Cluster(), (), listed(*records))._replace(**fields)


def array(job: int, tasks: str, **fields: str) -> dict[str, str]:
    return {"JobID": str(job), "ArrayJobID": str(job), "ArrayTaskID": tasks, **fields}


def het(first: int, number: int, **fields: str) -> dict[str, str]:
    return {"JobID": str(first + number), "HetJobID": str(first), "HetJobOffset": str(number), **fields}


def test_jobs_have_slurms_priorities_only_where_its_order_counts() -> None:
    records = ({"JobID": "1"}, {"JobID": "2", "PriorityLong": "0"}, {"JobID": "3", "Reason": "JobHeldUser"})
    ranked = state(lists(*records), as_ranked=True).jobs
    assert {job: each.direct_priority for job, each in ranked.items()} == {1: 50, 2: None, 3: None}
    counted = state(lists(*records), as_ranked=False).jobs
    assert all(each.direct_priority is None for each in counted.values())
    assert ranked[JobId(3)].held_by == "ann"
    runs = {"JobID": "4", "State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00"}
    assert state(lists(runs), as_ranked=True).jobs[JobId(4)].direct_priority is None


def test_a_job_that_can_never_start_counts_as_held() -> None:
    never = {"JobID": "1", "Dependency": "afterok:4(failed),afterok:5(unfulfilled)"}
    found = state(lists(never), as_ranked=True).jobs[JobId(1)]
    assert (found.held_by, found.never, found.waits_for) == (NEVER, None, ())


def test_each_waiting_task_is_planned_up_to_a_bound() -> None:
    many = lists(array(7, f"0-{PLANNED_TASKS + 4}%3"))
    assert len(state(many, as_ranked=True).jobs) == PLANNED_TASKS
    assert len(state(many, as_ranked=False).jobs) == PLANNED_TASKS + 5
    assert state(lists({"JobID": "3"}, {"JobID": "12"}, {"JobID": "5"}), as_ranked=True).last_job_id == 12


def test_all_tasks_have_the_bound_of_their_array() -> None:
    runs = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00"}
    jobs = state(
        lists(array(7, "2-3%4"), array(7, "1", **runs) | {"JobID": "9"}, array(20, "1"), {"JobID": "5"}),
        as_ranked=True,
    ).jobs
    bounds = {job: each.array.at_once for job, each in jobs.items() if each.array is not None}
    assert bounds == {task_id(7, 1): 4, task_id(7, 2): 4, task_id(7, 3): 4, task_id(20, 1): 0}


def test_site_factors_are_those_of_the_job_or_its_array() -> None:
    records = ({"JobID": "1"}, {"JobID": "2"}, array(7, "0-1"))
    jobs = state(lists(*records, site_factors={1: -5, 7: 3}), as_ranked=False).jobs
    assert {job: each.site_factor for job, each in jobs.items()} == {
        1: -5,
        2: 0,
        task_id(7, 0): 3,
        task_id(7, 1): 3,
    }


def test_components_that_wait_belong_to_the_first_one_in_their_order() -> None:
    jobs = listed(het(7, 2), het(7, 0), het(7, 1), het(20, 1), het(30, 0), {"JobID": "5"})
    assert {first: [each.id for each in others] for first, others in components(jobs).items()} == {7: [8, 9]}
    runs = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00"}
    assert components(listed(het(7, 0, **runs), het(7, 1, **runs))) == {}


def test_a_component_is_planned_as_its_first_one_and_a_task_as_the_first_that_waits() -> None:
    jobs = lists(het(7, 0), het(7, 1), het(7, 2), {"JobID": "5"}, array(20, "2-4"))
    planned = {}
    for each in jobs.jobs:
        job = each.task(3) if each.tasks else each.job
        planned[job.id] = _planned_id(jobs, LookedUpJob(job, each))
    assert planned == {
        7: (7, True),
        8: (7, True),
        9: (7, True),
        5: (5, False),
        task_id(20, 3): (task_id(20, 2), False),
    }


async def test_the_copy_of_a_cluster_is_made_anew_when_any_of_its_lists_changes() -> None:
    mirror = planning_mirror(VirtualClock(Millis(9)), "lab", "ann")
    first = lists({"JobID": "1"}, accounts=Accounts(), site_factors={1: 2})
    engine = await mirror._fresh(first)
    assert await mirror._fresh(first._replace(at=Millis(10))) is engine, "a later moment alone changes nothing"
    changes = {
        "rules": replace(Cluster(), mutable=not Cluster().mutable),
        "nodes": (),
        "jobs": listed({"JobID": "2"}),
        "accounts": Accounts(),
        "reservations": (Reservation(name="r", nodes=(), start_at=1, end_at=2),),
        "site_factors": {1: 3},
    }
    changed = first
    for name, value in changes.items():
        before, changed = engine, changed._replace(**{name: value})
        engine = await mirror._fresh(changed)
        assert (engine is before) is (value == ()), name


def test_what_keeps_one_component_from_starting_keeps_all() -> None:
    late, long = {"EligibleTime": "2026-11-21T09:00:00"}, {"TimeLimit": "5:00:00", "PriorityLong": "20"}
    (job,) = state(lists(het(7, 0, **late), het(7, 1, **long)), as_ranked=True).jobs.values()
    assert (job.id, job.direct_priority, job.spec.time_limit_seconds) == (7, 20, 5 * 3600)
    assert job.spec.begin_at is not None
    assert len(job.spec.components) == 1
    (held,) = state(lists(het(7, 0), het(7, 1, Reason="JobHeldAdmin")), as_ranked=True).jobs.values()
    assert held.held_by == "an administrator"
    failed = het(7, 1, Dependency="afterok:4(failed)")
    (never,) = state(lists(het(7, 0), failed), as_ranked=True).jobs.values()
    assert never.held_by == NEVER
    (plain,) = state(lists(het(7, 0), het(7, 1)), as_ranked=True).jobs.values()
    assert (plain.held_by, plain.spec.begin_at) == ("", None)


def test_ages_are_counted_at_the_moment_that_is_known() -> None:
    assert state(lists(), as_ranked=True).usage_at == 9
    found = state(lists(counted_at=Millis(4)), as_ranked=True)
    assert (found.at, found.usage_at, found.usage_reset_at) == (9, 4, 4)
    assert cluster.shards_per_card(()) == 0


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (JobId(1), 1),
        (rest_id(7), rest_id(7)),
        (task_id(7, 3), task_id(7, 3)),
        (task_id(7, 1), task_id(7, 1)),
        (JobId(7), task_id(7, 1)),
        (task_id(7, 9), None),
        (JobId(99), None),
    ],
)
def test_a_job_is_found_by_its_id_its_task_or_its_array(wanted: JobId, found: int | None) -> None:
    runs = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00"}
    jobs = listed({"JobID": "1"}, array(7, "1", **runs) | {"JobID": "9"}, array(7, "2-4"))
    known = find_job(jobs, wanted)
    assert (known and known.job.id) == found


def test_a_job_that_was_looked_up_has_slurms_number_its_leader_and_its_first_task() -> None:
    (waiting,) = listed(array(7, "2-4"))
    known = LookedUpJob(waiting.task(3), waiting)
    assert (known.number, known.leader, known.alike) == (7, None, task_id(7, 2))
    assert waiting.words == "7_[2-4]"
    (part,) = listed(het(7, 1))
    assert (LookedUpJob(part.job, part).leader, LookedUpJob(part.job, part).alike) == (7, 8)
    (first,) = listed(het(7, 0))
    assert LookedUpJob(first.job, first).leader is None
    for printed, leader in (("7+1", 7), ("7+0", None), ("7", None), ("7_1", None)):
        past = LookedUpJob(first.job, None, {"JobID": printed, "JobIDRaw": "44"})
        assert (past.number, past.leader, past.alike) == (44, leader, first.job.id)
    assert LookedUpJob(first.job, None).number == first.job.id


WEIGHTS = Weights(age=10, fairshare=100, tres={"cpu": 4.0})


def test_the_priority_of_a_job_is_made_of_the_columns_of_sprio() -> None:
    line = "7_4 | batch | ann | 155.9 | 5 | 0 | 50 | 0 | 7 | 0 | -3 | cpu=2,mem=0 | -2"
    (found,) = priorities.breakdowns(f"JOBID|PARTITION\n{line}\nnothing\n8|short\n", WEIGHTS)
    assert (found.partition, found.total, found.nice) == ("batch", 155, -2)
    parts = {(part.name, part.tres): (part.raw, part.weight, part.contribution) for part in found.parts}
    assert parts == {
        (FactorName.SITE, ""): (-3.0, 1.0, -3.0),
        (FactorName.AGE, ""): (0.5, 10, 5.0),
        (FactorName.FAIRSHARE, ""): (0.5, 100, 50.0),
        (FactorName.PARTITION, ""): (0.0, 0, 7.0),
        (FactorName.TRES, "cpu"): (0.5, 4.0, 2.0),
    }


HEAD = "Cluster|Account|User|Partition|Share|Priority|QOS|Def QOS|MaxWall|MaxTRES|MaxJobs|MaxSubmit|GrpJobs|GrpTRES"
ROWS = """
lab|root||||||||||||
lab|nlp|||3|7|+high,-low|high|1-00:00:00|cpu=4|5|6|7|gres/gpu=8
lab|nlp|ann|gpu|parent|||||||||
lab|new||||||||||||
other|nlp||||||||||||"""


def test_the_limits_of_associations_are_those_of_sacctmgr() -> None:
    found = accounts.accounts(
        with_header(HEAD + ROWS), (), with_header("Account|User\nroot|\n nlp|"), "lab"
    ).associations
    assert set(found) == {"root/", "nlp/", "nlp/ann/gpu", "new/"}
    nlp = found["nlp/"]
    assert (nlp.parent, nlp.shares, nlp.priority, nlp.qos, nlp.default_qos) == ("root", 3, 7, ("high", "low"), "high")
    assert nlp.limits == ResourceLimits(
        max_wall_seconds=86_400,
        max_tres_per_job={"cpu": 4.0},
        max_jobs=5,
        max_submit=6,
        grp_jobs=7,
        grp_tres={"gres/gpu": 8.0},
    )
    assert (found["nlp/ann/gpu"].shares, found["nlp/ann/gpu"].parent) == (None, "")
    assert (found["new/"].parent, found["root/"].parent, found["new/"].priority) == ("root", "", None)


def test_a_qos_has_its_own_names_of_limits() -> None:
    limits = "MaxJobsPU|MaxSubmitPU|MaxJobsPA|MaxSubmitPA|MaxTRESPU|MaxTRESPA"
    head = f"Name|Priority|GraceTime|UsageFactor|{limits}|Preempt|Flags"
    rows = "high|9|00:02:00|0.000000|1|2|3|4|cpu=5|cpu=6|low,scav|DenyOnLimit\nlow|||||||||||"
    found = accounts.accounts((), with_header(f"{head}\n{rows}"), (), "c").qos
    high, low = found["high"], found["low"]
    assert (high.priority, high.grace_seconds, high.usage_factor) == (9, 120, 0.0)
    assert (high.limits.max_jobs, high.limits.max_submit) == (1, 2)
    assert (high.max_jobs_per_account, high.max_submit_per_account) == (3, 4)
    assert (high.max_tres_per_user, high.max_tres_per_account) == ({"cpu": 5.0}, {"cpu": 6.0})
    assert (high.preempt, high.flags) == (("low", "scav"), ("DenyOnLimit",))
    assert (low.priority, low.grace_seconds, low.usage_factor, low.exempt_seconds) == (0, 0, 1.0, None)


def test_a_reservation_without_times_is_left_out() -> None:
    text = (
        "ReservationName=a StartTime=1795248117 EndTime=1795248177 Nodes=n[1-2] Users=ann Flags=SPEC,MAINT\n"
        "ReservationName=b StartTime=N/A EndTime=1795248177 Nodes=n1\n"
        "ReservationName=c StartTime=1795248117 EndTime=1795248177 Nodes=n1 Accounts=nlp,cv Flags=MAINTAINED\n"
    )
    first, second = reservations.reservations(records_of_key(text, reservations.KEY), None)
    assert (first.name, first.nodes, first.users, first.maintenance) == ("a", ("n1", "n2"), ("ann",), True)
    assert (first.start_at, first.end_at) == (1_795_248_117_000, 1_795_248_177_000)
    assert (second.name, second.accounts, second.maintenance) == ("c", ("nlp", "cv"), False)
    assert (
        list(reservations.reservations(records_of_key("No reservations in the system\n", reservations.KEY), None)) == []
    )


def test_a_suspended_job_keeps_its_nodes() -> None:
    gone = {"JobID": "4", "State": "SUSPENDED", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00"}
    (each,) = listed(gone)
    assert (each.kind, each.waits, each.starts_at) == (JobState.SUSPENDED, False, None)
    assert each.job.suspension is not None
