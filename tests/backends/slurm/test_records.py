"""What the reading of a job, a partition or a node gives where Slurm leaves a field empty or a name out."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping import holding, reasons, rules
from cockpit.backends.slurm.mapping.acts import NotPossible
from cockpit.backends.slurm.mapping.completeness import flaw
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.records import records_of_key, settings
from cockpit.backends.slurm.mapping.rest import accounts as rest_accounts
from cockpit.backends.slurm.mapping.rest import cluster as rest_cluster
from cockpit.backends.slurm.mapping.rest import jobs as rest_jobs
from cockpit.model.ids import Millis
from cockpit.model.reasons import SchedulerReason
from cockpit.model.spec import Array
from tests.backends.slurm.test_values import a_record


@pytest.mark.req("SL-10")
@pytest.mark.parametrize(
    ("code", "about"),
    [
        ("PartitionTimeLimit", "partition gpu, cpu"),
        ("QOSMaxJobsPerUserLimit", "QOS high"),
        ("AssocMaxJobsLimit", "ann in account nlp"),
    ],
)
def test_a_reason_names_what_its_code_leaves_out(code: str, about: str) -> None:
    listed = Listed(a_record(Reason=code, Partition="gpu,cpu", QOS="high", Account="nlp"), None)
    assert reasons.reason(listed) == SchedulerReason(code, about)


@pytest.mark.req("SL-10")
def test_a_job_without_account_or_qos_has_none() -> None:
    without, having = (Listed(a_record(Account=name, QOS=name), None).job.spec for name in ("", "nlp"))
    assert (without.account, without.qos, having.account, having.qos) == (None, None, "nlp", "nlp")


@pytest.mark.req("SL-10")
@pytest.mark.parametrize(
    ("printed", "array"), [("4-6%2", Array((4, 5, 6), 2)), ("4-6", Array((4, 5, 6))), ("N/A", None)]
)
def test_a_waiting_array_has_its_tasks_and_its_limit_of_concurrent_ones(printed: str, array: Array | None) -> None:
    assert Listed(a_record(ArrayJobID="3", ArrayTaskID=printed), None).job.spec.array == array


@pytest.mark.req("SL-10")
def test_figures_that_a_partition_omits_are_zero() -> None:
    (found,) = rules.partitions_of(records_of_key("PartitionName=gpu Nodes=n1", rules.PARTITION_KEY))
    assert (found.priority_job_factor, found.priority_tier, found.min_nodes, found.grace_seconds) == (0, 0, 0, 0)


@pytest.mark.req("SL-10")
def test_over_rest_a_node_without_a_state_is_unknown_and_one_user_has_an_administrators_level() -> None:
    records = [rest_cluster.node(each) for each in ({"name": "n1"}, {"name": "n2", "state": ["IDLE", "DRAIN"]})]
    assert [each["State"] for each in records] == ["UNKNOWN", "IDLE+DRAIN"]
    assert rest_cluster.node({"name": "n1", "reason": "broken fan"})["Reason"] == "broken fan"
    assert rest_accounts.admin_level([{"administrator_level": ["Operator"]}]) == ({"AdminLevel": "Operator"},)


@pytest.mark.req("SL-23")
@pytest.mark.parametrize(("left", "advice"), [(59, "no time is left"), (60, "--by 1m` is the most")])
def test_an_extension_beyond_the_time_limit_names_the_longest_that_is_within_it(left: int, advice: str) -> None:
    job = Listed(a_record(State="RUNNING", NodeList="n1", StartTime="2026-11-21T08:00:00"), None).job
    assert job.attempt is not None
    last = job.attempt.placed_at // 1000 + job.spec.time_limit_seconds - holding.SLACK_SECONDS
    kept = replace(job, held_until=Millis(1000 * (last - left)))
    with pytest.raises(NotPossible, match=advice):
        holding.extension(kept, 300, admin=False)


@pytest.mark.req("SL-04", "SL-10")
def test_over_rest_only_tasks_of_arrays_are_named_as_such() -> None:
    node = {"job_resources": {"nodes": {"allocation": [{"name": "n1", "cpus": {"count": 2}}]}}}
    whole, task = {"job_id": 7, "array_job_id": 0, "array_task_id": 0, **node}, {"job_id": 8, "array_job_id": 6, **node}
    tasks = [{**task, "array_task_id": {"set": True, "number": 2}}, {**task, "array_task_id": {"set": False}}]
    records = rest_jobs.allocations([whole, *tasks])
    ids = [(each["JobId"], each["ArrayJobId"], each["ArrayTaskId"]) for each in records]
    assert ids == [("7", "", ""), ("8", "6", "2"), ("8", "", "")]


@pytest.mark.req("SL-04", "SL-15")
def test_over_rest_a_user_without_own_shares_has_those_of_the_account() -> None:
    users = [{"account": "root", "user": "ann", "shares_raw": raw} for raw in (2**31 - 1, 3)]
    rows = rest_accounts.tree_of([{"account": "root", "user": "", "parent_account": ""}, *users])
    assert [row["RawShares"] for row in rows if row["User"] == "ann"] == ["parent", "3"]


@pytest.mark.req("SL-02")
@pytest.mark.parametrize(("printed", "seconds"), [("", 300), ("PriorityCalcPeriod = 00:01:00", 60)])
def test_usage_is_counted_every_five_minutes_unless_the_cluster_says_otherwise(printed: str, seconds: int) -> None:
    assert rules.cluster(settings(printed), ()).priority.calc_period_seconds == seconds


@pytest.mark.req("TR-04", "SL-01")
def test_statistics_that_are_none_and_those_that_are_cut_are_told_apart() -> None:
    head, foot = "sdiag output at Sat Nov 21\n", "Remote Procedure Call statistics by user\n"
    found = [flaw(("sdiag",), printed, "") for printed in (head + foot, head, "\x00\x07 noise")]
    assert found[0] == ""
    assert all(found[1:])
    assert found[1] != found[2]


@pytest.mark.req("TR-04", "SL-01")
def test_a_configuration_that_is_cut_at_either_end_is_broken_off_and_another_text_is_foreign() -> None:
    argv = ("scontrol", "show", "config")
    first, version, last = "ClusterName = lab\n", "SLURM_VERSION = 22.05.8\n", "X11Parameters = (null)\n"
    assert flaw(argv, first + version + last, "") == ""
    cut = [flaw(argv, each, "") for each in (first, version, version + last, first + version + last[:-1])]
    foreign = flaw(argv, "Welcome to the lab\n", "")
    assert all((foreign, *cut))
    assert len({*cut}) == 1
    assert foreign not in cut


@pytest.mark.req("SL-10", "SL-01")
def test_slurmrestd_names_the_component_of_a_heterogeneous_job_and_of_other_jobs_none() -> None:
    jobs = [
        {"job_id": 48, "het_job_id": 47, "het_job_offset": 1, "array_job_id": 0},
        {"job_id": 50, "het_job_id": 0, "het_job_offset": 0, "array_job_id": 0},
    ]
    records = rest_jobs.records_of_listed(jobs, ("JobID", "HetJobID", "HetJobOffset"))
    components = {each["JobID"]: Listed(a_record(**each)).component for each in records}
    assert components == {"48": (47, 1), "50": None}
    assert [each["HetJobOffset"] for each in records] == ["1", "N/A"]


@pytest.mark.req("SL-10", "SL-01")
def test_slurmrestd_lists_one_job_a_task_or_an_array_of_those_that_it_answers_with() -> None:
    jobs = [
        {"job_id": 6, "array_job_id": 6, "array_task_id": None, "array_task_string": "4-9"},
        {"job_id": 8, "array_job_id": 6, "array_task_id": 2},
        {"job_id": 9, "array_job_id": 6, "array_task_id": 3},
        {"job_id": 10, "array_job_id": 0, "array_task_id": None},
    ]

    def listed(wanted: str) -> list[str]:
        return [each["JobID"] for each in rest_jobs.records_of_listed(jobs, ("JobID",), wanted)]

    assert listed("10") == ["10"]
    assert listed("6") == ["6", "8", "9"]
    assert listed("6_3") == ["6", "9"], "the first record may have the task among those that wait"
    assert listed("7") == []
    assert listed("") == ["6", "8", "9", "10"]
