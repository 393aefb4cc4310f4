"""What a job claims by its own request, account, QOS and partition."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.accounts import Accounts, Association, Qos
from cockpit.model.attempt import Attempt
from cockpit.model.cluster import Cluster, Partition, Priority, PriorityFlag, PriorityKind, Weights
from cockpit.model.ids import JobId, Millis, NodeName, UserName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.node import Allocation
from cockpit.sched.priority.priority_context import PriorityContext
from tests.sched.share_trees import account, accounts_of, user
from tests.sched.world import cards, node, spec_of, wants

pytestmark = pytest.mark.req("SC-01")

NODES = {
    each.name: each
    for each in (
        node("n1", cards(4, "a100"), cpus=8, memory_mib=64_000),
        node("n2", cards(8, "h100"), cpus=16, memory_mib=128_000),
        node("n3", cpus=8, memory_mib=8_000, pool="small"),
        node("login", cpus=64, pool="login"),
    )
}
PARTITIONS = (
    Partition(name="gpu", nodes=("n1", "n2"), priority_job_factor=50, billing_weights={"cpu": 0.6, "gres/gpu": 10.0}),
    Partition(name="all", priority_job_factor=20),
    Partition(name="none", pools=("nowhere",), priority_job_factor=0),
)
WEIGHTS = Weights(tres={"gres/gpu:h100": 1.0, "mem": 1.0, "billing": 1.0, "cpu": 1.0, "gres/gpu": 1.0})
ACCOUNTS = replace(
    accounts_of(
        account("lab"),
        Association(account="lab", user="ann", priority=10),
        Association(account="lab", user="ann", partition="gpu", priority=40),
        user("lab", "bob"),
    ),
    qos={"normal": Qos(name="normal", priority=10), "high": Qos(name="high", priority=100)},
)


def context(*flags: PriorityFlag, accounts: Accounts = ACCOUNTS, **fields) -> PriorityContext:
    priority = Priority(kind=PriorityKind.MULTIFACTOR, weights=WEIGHTS, flags=flags, **fields)
    return PriorityContext(Cluster(partitions=PARTITIONS, priority=priority, login_pool="login"), accounts, NODES)


def job(*specs, name: str = "ann", account: str = "lab", qos: str = "normal", **fields) -> Job:
    of_job = {key: fields.pop(key) for key in ("state", "attempt", "accrues_from", "site_factor") if key in fields}
    return Job(
        id=JobId(1), spec=spec_of(*specs, **fields), submitter=Submitter(UserName(name), 1, 1, (1,), "/"), project="p",
        submitted_at=Millis(5), state_since=Millis(5), account=account, qos=qos, **of_job,
    )  # fmt: skip


def test_partition_and_qos_are_parts_of_the_highest():
    inputs = context().inputs(job(), "all")
    assert (inputs.partition, inputs.qos) == (20 / 50, 10 / 100)


def test_a_missing_partition_or_qos_adds_no_priority():
    inputs = context().inputs(job(account="gone", qos="gone"), "gone")
    assert (inputs.partition, inputs.qos, inputs.assoc, inputs.association) == (0, 0, 0, None)


@pytest.mark.parametrize("flags", [(), (PriorityFlag.NO_NORMAL_PART,)], ids=["normalised", "raw"])
def test_a_cluster_without_partitions_has_one(flags: tuple[PriorityFlag, ...]):
    cluster = Cluster(priority=Priority(kind=PriorityKind.MULTIFACTOR, flags=flags))
    assert PriorityContext(cluster, Accounts(), NODES).inputs(job(), "").partition == 1.0


def test_the_association_of_the_partition_wins():
    assert context().inputs(job(), "gpu").association == "lab/ann/gpu"
    assert (context().inputs(job(), "gpu").assoc, context().inputs(job(), "all").assoc) == (1.0, 0.25)


@pytest.mark.parametrize(
    ("flag", "raw"),
    [
        (PriorityFlag.NO_NORMAL_ASSOC, (10.0, 0.4, 0.1)),
        (PriorityFlag.NO_NORMAL_PART, (0.25, 20.0, 0.1)),
        (PriorityFlag.NO_NORMAL_QOS, (0.25, 0.4, 10.0)),
        (PriorityFlag.NO_NORMAL_ALL, (10.0, 20.0, 10.0)),
        (PriorityFlag.NO_NORMAL_TRES, (0.25, 0.4, 0.1)),
    ],
)
def test_no_normal_leaves_raw(flag: PriorityFlag, raw: tuple[float, ...]):
    inputs = context(flag).inputs(job(), "all")
    assert (inputs.assoc, inputs.partition, inputs.qos) == raw


class TestResources:
    def test_resource_factors_are_in_slurms_order_whatever_the_order_of_the_configuration(self):
        assert context().tres == ("cpu", "mem", "billing", "gres/gpu:h100", "gres/gpu")

    def test_resource_factors_are_parts_of_the_partitions_totals(self):
        inputs = context().inputs(job(wants(2000, "h100", cpus=4, memory_mib=1024), nodes=1), "gpu")
        totals = int(0.6 * 24 + 120)
        assert inputs.tres == (4 / 24, 1024 / 192_000, int(0.6 * 4 + 20) / totals, 2 / 8, 2 / 12)

    def test_resource_factors_count_cards_of_any_model_only_as_cards(self):
        assert context().inputs(job(wants(1000)), "gpu").tres[3:] == (0.0, 1 / 12)

    def test_resources_that_a_partition_lacks_count_nothing(self):
        assert context().inputs(job(wants(1000)), "none").tres == (0.0,) * 5

    @pytest.mark.parametrize("flag", [PriorityFlag.NO_NORMAL_TRES, PriorityFlag.NO_NORMAL_ALL])
    def test_resource_factors_are_raw_under_no_normal(self, flag: PriorityFlag):
        inputs = context(flag).inputs(job(wants(2000, "h100", cpus=4, memory_mib=1024)), "gpu")
        assert inputs.tres == (4.0, 1024.0, 22.0, 2.0, 2.0)

    def test_resource_factors_of_a_running_job_are_by_what_it_holds(self):
        placement = (Allocation(0, NodeName("n1"), 7, 2048),)
        attempt = Attempt(number=1, spec_index=0, placement=placement, placed_at=Millis(9), replicas=())
        inputs = context().inputs(job(wants(cpus=4), state=JobState.RUNNING, attempt=attempt), "gpu")
        assert inputs.tres[:2] == (7 / 24, 2048 / 192_000)
        assert inputs.job_size == (1 / 3 + 7 / 32) / 2

    def test_resource_factors_of_a_requeued_job_are_by_what_it_requests(self):
        placement = (Allocation(0, NodeName("n1"), 7, 2048),)
        attempt = Attempt(number=1, spec_index=0, placement=placement, placed_at=Millis(9), replicas=())
        assert context().inputs(job(wants(cpus=4), attempt=attempt), "gpu").tres[0] == 4 / 24


class TestSize:
    def test_the_job_size_is_of_the_whole_cluster_without_login_nodes(self):
        assert context().inputs(job(wants(cpus=4), nodes=2), "gpu").job_size == (2 / 3 + 8 / 32) / 2

    def test_the_job_size_favours_small_jobs_where_configured(self):
        assert context(favor_small=True).inputs(job(wants(cpus=4)), "all").job_size == (2 / 3 + 28 / 32) / 2

    def test_the_job_size_is_relative_to_time_where_configured(self):
        found = context(PriorityFlag.SMALL_RELATIVE_TO_TIME).inputs(job(wants(cpus=16), limit=600), "all")
        assert found.job_size == 16 / 10 / 32

    def test_the_size_of_an_exclusive_job_counts_whole_nodes(self):
        """Those that it fits and that are biggest, as real Slurm counted them."""
        exclusive = job(wants(cpus=1, memory_mib=100), exclusive=True)
        assert context().inputs(exclusive, "all").job_size == (1 / 3 + 16 / 32) / 2
        assert context().inputs(exclusive, "all").tres[0] == 1 / 32

    def test_the_size_of_an_exclusive_job_counts_nodes_that_it_fits(self):
        assert context().inputs(job(wants(4000, "a100"), exclusive=True), "all").job_size == (1 / 3 + 8 / 32) / 2
        assert context().inputs(job(wants(), pins=("n3",), exclusive=True), "all").job_size == (1 / 3 + 8 / 32) / 2
        assert context().inputs(job(wants(), pool="small", exclusive=True), "all").job_size == (1 / 3 + 8 / 32) / 2

    def test_the_size_of_an_exclusive_job_that_fits_nowhere_is_what_it_requests(self):
        assert (
            context().inputs(job(wants(cpus=3, memory_mib=10**6), exclusive=True), "all").job_size
            == (1 / 3 + 3 / 32) / 2
        )


def test_age_counts_from_the_submission_under_accrue_always():
    assert context().inputs(job(accrues_from=None), "all").since is None
    assert context(PriorityFlag.ACCRUE_ALWAYS).inputs(job(accrues_from=Millis(70)), "all").since == 5
