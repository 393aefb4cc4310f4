"""Why jobs wait: the nodes and the limits that Slurm's codes mean."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping import licences
from cockpit.backends.slurm.mapping.cluster import ClusterLists
from cockpit.backends.slurm.mapping.jobparts import spreads_freely
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.spreads import Spreads
from cockpit.backends.slurm.opening import open_recorded
from cockpit.backends.slurm.past import look_up
from cockpit.backends.slurm.why import _CODE, _alone, _is, limit_of_code, unavailable_nodes
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.model.accounts import ResourceLimits, assoc_key
from cockpit.model.cluster import Cluster, Partition
from cockpit.model.forecast import Forecast
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import Job
from cockpit.model.node import NodeState
from cockpit.model.reasons import Held, NotEnoughFree, Resource, SchedulerReason
from tests.backends.slurm.test_values import a_record

pytestmark = pytest.mark.req("SL-13")
RESERVED = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions"


async def a_cluster(*down: str) -> ClusterLists:
    """The recorded cluster with two partitions, some of whose nodes are down."""
    backend, _ = await open_recorded("22.05")
    lists = await backend._reading.everything(closely=False)
    nodes = tuple(
        each._replace(node=replace(each.node, state=NodeState.DRAINED if each.node.name in down else NodeState.UP))
        for each in lists.nodes
    )
    names = {"gpu": ("n1", "n2"), "batch": ("n3", "n4")}
    partitions = tuple(Partition(name=name, nodes=tuple(map(NodeName, each))) for name, each in names.items())
    return lists._replace(nodes=nodes, rules=replace(Cluster(), partitions=partitions))


def a_job(**fields: str) -> Job:
    return Listed(a_record(**{"JobID": "7", "Partition": "gpu", **fields})).job


@pytest.mark.parametrize(
    ("code", "fields", "named"),
    [
        (RESERVED, {}, ["n1"]),
        (RESERVED, {"Partition": "gpu,batch"}, ["n1", "n3"]),
        (RESERVED, {"ReqNodes": "n[3-4]"}, ["n3"]),
        ("ReqNodeNotAvail, UnavailableNodes:n[2-3]", {"ReqNodes": "n1"}, ["n3"]),
        ("ReqNodeNotAvail, UnavailableNodes:", {"ReqNodes": "n1"}, ["n1"]),
        ("NodeDown", {}, ["n1"]),
        ("Resources", {}, []),
    ],
)
async def test_the_nodes_that_a_code_means_are_those_that_are_down(
    code: str, fields: dict[str, str], named: list[str]
) -> None:
    lists = await a_cluster("n1", "n3")
    found = unavailable_nodes(SchedulerReason(code), a_job(**fields), lists)
    assert [name for name, _ in found] == named
    assert list(unavailable_nodes(Held("ann", None), a_job(**fields), lists)) == []


@pytest.mark.parametrize(
    ("code", "holder", "limit", "resource", "same"),
    [
        ("QOSMaxGRESPerUser", "qos high", "MaxTRESPerUser", "gres/gpu", True),
        ("QOSMaxGRESPerUser", "user ann", "MaxTRESPerUser", "gres/gpu", False),
        ("QOSMaxGRESPerUser", "qos high", "MaxTRESPerJob", "gres/gpu", False),
        ("QOSMaxGRESPerUser", "qos high", "MaxTRESPerUser", "cpu", False),
        ("MaxGRESPerAccount", "qos high", "MaxTRESPerAccount", "gres/gpu", True),
        ("MaxGRESPerAccount", "account nlp", "MaxTRESPerAccount", "gres/gpu", False),
        ("AssocGrpCpuLimit", "account nlp", "GrpTRES", "cpu", True),
        ("AssocGrpCpuLimit", "account nlp", "MaxTRES", "cpu", False),
        ("AssocGrpCpuLimit", "qos high", "GrpTRES", "cpu", False),
        ("AssocGrpMemLimit", "account nlp", "GrpTRES", "mem", True),
        ("AssocGrpBillingLimit", "account nlp", "GrpTRES", "billing", True),
        ("QOSMinGRES", "qos high", "MinTRESPerJob", "gres/gpu", True),
    ],
)
def test_a_code_means_the_limit_of_its_holder_scope_and_resource(
    code: str, holder: str, limit: str, resource: str, same: bool
) -> None:
    match = _CODE.fullmatch(code)
    assert match is not None
    assert _is(match, holder, limit, resource) is same


async def test_of_several_limits_that_a_code_may_mean_the_fullest_is_shown() -> None:
    backend, _ = await open_recorded("22.05")
    lists = await backend._reading.everything(closely=True)
    job = (await backend.job(JobId(54))).job
    rules = lists.accounts.associations
    tight = {
        "frank": ResourceLimits(grp_tres={"cpu": 1000.0}),
        "": ResourceLimits(grp_tres={"cpu": 100.0}),
    }
    changed = {
        key: replace(rules[key], limits=limits)
        for user, limits in tight.items()
        if (key := assoc_key(job.account, user)) in rules
    }
    assert len(changed) == 2
    accounts = replace(lists.accounts, associations={**rules, **changed})
    snapshot = await backend._mirror.snapshot(lists._replace(accounts=accounts))
    found = limit_of_code(snapshot, job, "AssocGrpCpuLimit")
    assert found is not None
    assert (found.holder, found.allowed) == (f"account {job.account}", 100)
    assert found.asked == job.spec.specs[0].cpus * job.spec.nodes
    assert limit_of_code(snapshot, job, "assoc grp cpu limit") is None
    largest = ResourceLimits(max_tres_per_job={"cpu": 3.0})
    own = {key: replace(rules[key], limits=largest) for key in [assoc_key(job.account, "frank")]}
    accounts = replace(lists.accounts, associations={**rules, **own})
    snapshot = await backend._mirror.snapshot(lists._replace(accounts=accounts))
    found = limit_of_code(snapshot, job, "AssocMaxCpuPerJobLimit")
    assert found is not None
    assert (found.allowed, found.used, found.resource) == (3, 0, "cpu"), "no other job counts for it"


@pytest.mark.req("SL-14")
@pytest.mark.parametrize(("partitions", "lacks"), [(("debug",), Resource.CPUS), (("batch", "debug"), None), ((), None)])
async def test_a_component_is_explained_by_what_its_own_partition_lacks(
    partitions: tuple[str, ...], lacks: Resource | None
) -> None:
    backend, _ = await open_recorded("22.05")
    everything = await backend._reading.everything(closely=True)
    known = await look_up(backend._reading, JobId(47))
    known = known._replace(job=replace(known.job, partitions=partitions), listed=None)
    reason = _alone(await backend._mirror.snapshot(everything), everything, known)
    assert (reason.resource if isinstance(reason, NotEnoughFree) else reason) == lacks


LICENSED = {"State": "RUNNING", "NodeList": "n1", "StartTime": "2026-11-21T08:00:00"}


def test_licences_that_are_short_are_named_with_their_figures() -> None:
    known = [licences.Licence("matlab", 4, 3), licences.Licence("fluent@site", 2, 0), licences.Licence("other", 9, 9)]
    assert licences.usage_text(known, {"matlab": 2, "fluent@site": 1}) == "matlab: 3 of 4 in use, 2 asked"
    both = "matlab: 3 of 4 in use, 1 asked; fluent@site: 0 of 2 in use, 2 asked"
    assert licences.usage_text(known, {"matlab": 1, "fluent@site": 2}) == both
    assert licences.requested({"Licenses": "matlab:3,fluent@site|x;y:0"}) == {
        "matlab": 3,
        "fluent@site": 1,
        "x": 1,
        "y": 1,
    }
    assert licences.requested({"Licenses": "(null)"}) == licences.requested({}) == {}


def test_the_holders_of_licences_and_their_queues_are_counted() -> None:
    jobs = [
        Listed(a_record(**LICENSED, JobID="1", Licenses="matlab:1")),
        Listed(a_record(**LICENSED, JobID="2", Licenses="matlab:2,other:5")),
        Listed(a_record(**LICENSED, JobID="3", Licenses="other:9")),
        Listed(a_record(JobID="4", ArrayJobID="4", ArrayTaskID="0-4", Licenses="matlab:1")),
        Listed(a_record(JobID="9", Licenses="matlab:1")),
        Listed(a_record(**LICENSED | {"State": "COMPLETED"}, JobID="10", Licenses="matlab:9")),
        Listed(a_record(JobID="11")),
    ]
    assert licences.holders(jobs, {"matlab": 1}) == (2, 1)
    known = [licences.Licence("matlab", 4, 3), licences.Licence("fluent", 2, 0)]
    first, second = licences.queue_rows(known, jobs)
    assert (first.path, first.waiting, first.running) == ("matlab", 6, 2)
    assert (second.waiting, second.running) == (0, 0)
    assert 4 * sum(first.used.values()) == 3 * sum(first.max.values()) > 0, "3 of 4 are in use"


def change_recorded_job(monkeypatch: pytest.MonkeyPatch, job: int, *changes: tuple[str, str]) -> None:
    """Have the recorded cluster print a job's record with these changes."""
    recorded = RecordedCommands._text

    def text(commands: RecordedCommands, name: str) -> str:
        head, mark, rest = recorded(commands, name).partition(f"JobId={job} ")
        record, *others = rest.split("\n\n")
        for old, new in changes:
            record = record.replace(old, new)
        return head + mark + "\n\n".join([record, *others])

    monkeypatch.setattr(RecordedCommands, "_text", text)


@pytest.mark.req("SL-14")
async def test_a_job_of_tasks_has_a_forecast_only_where_its_tasks_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job asked for four tasks without a number of nodes, and Slurm's plan has two nodes."""
    before, planned = "NumNodes=1 NumCPUs=2 NumTasks=1 CPUs/Task=2", "NumNodes=2 NumCPUs=4 NumTasks=4 CPUs/Task=1"
    more = ("TRES=cpu=2", "TRES=cpu=4"), ("MinCPUsNode=2", "MinCPUsNode=1"), ("Partition=debug", "Partition=batch")
    change_recorded_job(monkeypatch, 47, (before, planned), (RESERVED, "None"), *more)
    backend, _ = await open_recorded("22.05")
    listed = next(each for each in (await backend._reading.everything(closely=True)).jobs if each.id == 47)
    assert spreads_freely(listed.fields)
    assert (await backend.explain(JobId(47))).forecast.likely_at is not None

    async def unknown() -> Spreads:
        return {}

    monkeypatch.setattr(backend._reading, "spreads", unknown)
    assert (await backend.explain(JobId(47))).forecast == Forecast()


@pytest.mark.req("SL-14")
async def test_a_job_that_would_start_now_has_no_forecast_while_slurm_has_another_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slurm's reason may be a rule that the embedded scheduler does not know."""
    first = ("Partition=debug", "Partition=batch"), ("Priority=12829", "Priority=99999999")
    for reason in ("None", "Licenses"):
        with monkeypatch.context() as patch:
            change_recorded_job(patch, 47, *first, (RESERVED, reason))
            backend, _ = await open_recorded("22.05")
            forecast = (await backend.explain(JobId(47))).forecast
        assert forecast.now is (reason == "None")
        assert (forecast == Forecast()) is (reason == "Licenses")
