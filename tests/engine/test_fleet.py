"""A fleet of embedded clusters: gangs over clusters, both modes, and what becomes of a placement that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.engine import decide
from cockpit.engine.access import Actor
from cockpit.engine.machine import Machine
from cockpit.engine.submission.submit import submit
from cockpit.model import events
from cockpit.model.attempt import EndCause
from cockpit.model.catalogue import AlgorithmEntry, ImageEntry, ModelEntry, PoolEntry, SpecEntry
from cockpit.model.fleet import OVER_CLUSTERS, BindingMode, FleetPart, Member
from cockpit.model.ids import JobId, NodeName
from cockpit.model.image import Mpi
from cockpit.model.job import JobState
from cockpit.model.mounts import Algorithm, Model, ModelSource
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.reasons import ClusterShort, NoMemberPlacement, Resource
from cockpit.model.refusal import Refusal
from cockpit.model.resilience import Restart, Resume
from cockpit.model.spec import Access, DebugHold, Failover, HoldCards, NodeSpec, Suspension
from cockpit.sched.explain import reason_of
from tests.builders import ANN, MINUTE, SECOND, a_node, a_spec
from tests.engine.fleet_driver import COUNTING, RESERVING, FleetDriver

if TYPE_CHECKING:
    from cockpit.model.node import Node
    from cockpit.model.reasons import Reason

TOLERATED = 30 * SECOND


def fleet(**members: tuple[dict[str, object], list[Node]]) -> FleetDriver:
    """Name = (what it can do, its nodes)."""
    return FleetDriver(
        [Member(name=name, **can) for name, (can, _) in members.items()],
        {name: nodes for name, (_, nodes) in members.items()},
    )


def machines(count: int, cards: int = 8) -> list[Node]:
    return [a_node(f"n{number}", cards=cards) for number in range(1, count + 1)]


def filled(driver: FleetDriver, member: str, *cards: int) -> None:
    """Jobs of the member itself, one on each node."""
    driver.members[member].submit(*[a_spec(f"own-{at}", card_milli=1000 * each) for at, each in enumerate(cards)])
    driver.settle()


def why(driver: FleetDriver, job: JobId) -> Reason | None:
    assert driver.plan is not None
    return reason_of(driver.plan, driver.job(job))


def bound_to(driver: FleetDriver, job: JobId) -> tuple[str, ...]:
    attempt = driver.job(job).attempt
    return attempt.members if attempt is not None else ()


@pytest.mark.req("FL-04")
def test_a_gang_starts_whole_in_one_cluster() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(2)))
    (job,) = driver.submit(a_spec(nodes=2, card_milli=8000))
    driver.settle()
    assert bound_to(driver, job) == ("b", "b")
    assert driver.running(job) == 2
    assert driver.job(job).state is JobState.RUNNING
    driver.end(job, code=0)
    assert driver.job(job).state is JobState.SUCCEEDED
    assert all(not each.machine.occupied for each in driver.members.values())


@pytest.mark.req("FL-05")
def test_a_job_is_divided_only_where_it_permits_that() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(3)))
    filled(driver, "b", 8)
    (plain,) = driver.submit(a_spec("plain", nodes=3, card_milli=8000))
    (divided,) = driver.submit(a_spec("divided", nodes=3, card_milli=8000, divide_over_clusters=True))
    driver.settle()
    assert driver.job(plain).state is JobState.QUEUED
    assert bound_to(driver, divided) == ("a", "b", "b")
    assert driver.running(divided) == 3


@pytest.mark.req("FL-05")
def test_a_job_for_which_no_cluster_is_big_enough_is_refused_unless_it_may_be_divided() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(2)))
    refused = submit(driver.machine, [a_spec(nodes=3)], Actor(ANN, admin=False), now=driver.now)
    assert isinstance(refused, Refusal)
    assert refused.reasons[0][0] == "nodes"
    assert driver.submit(a_spec(nodes=3, divide_over_clusters=True))


@pytest.mark.req("FL-05")
def test_no_job_is_divided_because_of_the_partition_that_it_names() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(1)))
    refused = submit(driver.machine, [a_spec(partitions=(OVER_CLUSTERS,))], Actor(ANN, admin=False), now=driver.now)
    assert isinstance(refused, Refusal)
    assert refused.message == "partitions: fleet is of all clusters; say divide_over_clusters: true with it"


@pytest.mark.req("FL-05")
def test_a_job_that_may_be_divided_stays_in_one_cluster_where_it_fits() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(2)))
    (job,) = driver.submit(a_spec(nodes=2, card_milli=1000, divide_over_clusters=True))
    driver.settle()
    assert bound_to(driver, job) == ("b", "b")


@pytest.mark.req("FL-04", "FL-06")
def test_no_part_of_a_gang_starts_before_all_parts_are_placed() -> None:
    driver = fleet(a=(COUNTING, machines(1)), b=(COUNTING, machines(2)))
    filled(driver, "b", 5, 5)
    (job,) = driver.submit(a_spec(nodes=2, card_milli=6000, divide_over_clusters=True))
    driver.settle()
    assert sorted(bound_to(driver, job)) == ["a", "b"]
    assert [driver.members[name].job(there).state for name, there in driver.parts(job).items()] == [
        JobState.STARTING,
        JobState.QUEUED,
    ]
    assert driver.running(job) == 0
    driver.after(TOLERATED)
    assert driver.job(job).state is JobState.QUEUED
    assert [each.state for each in driver.members["a"].machine.state.jobs.values()] == [JobState.STOPPED]
    assert driver.bodies(events.ReplicaStarted) == []


@pytest.mark.req("FL-06")
def test_binding_by_totals_may_choose_a_wrong_cluster_where_binding_by_reservation_does_not() -> None:
    """Six cards are free in all, three on each of two nodes; the other cluster has them on one node."""
    for can, mode in ((COUNTING, BindingMode.TOTALS), (RESERVING, BindingMode.RESERVATION)):
        driver = fleet(a=(can, machines(2)), b=(can, machines(1)))
        assert {each.mode for each in driver.machine.state.cluster.members} == {mode}
        filled(driver, "a", 5, 5)
        (job,) = driver.submit(a_spec(card_milli=6000))
        driver.settle()
        assert bound_to(driver, job) == (("a",) if mode is BindingMode.TOTALS else ("b",))
        assert driver.running(job) == (0 if mode is BindingMode.TOTALS else 1)


@pytest.mark.req("FL-08")
def test_a_job_that_does_not_fit_in_its_cluster_is_bound_to_another() -> None:
    driver = fleet(a=(COUNTING, machines(2)), b=(COUNTING, machines(1)))
    filled(driver, "a", 5, 5)
    (job,) = driver.submit(a_spec(card_milli=6000))
    driver.settle()
    driver.after(TOLERATED - 1)
    assert (bound_to(driver, job), driver.running(job)) == (("a",), 0)
    driver.after(1)
    assert (bound_to(driver, job), driver.running(job)) == (("b",), 1)
    (given_up,) = driver.bodies(events.BindingGivenUp)
    assert given_up == events.BindingGivenUp(job, 1, ("a",), ("b", "a"))
    left = [each for each in driver.machines["a"].state.jobs.values() if each.part is not None]
    assert [(each.state, each.end_cause) for each in left] == [(JobState.STOPPED, EndCause.STOP)]


@pytest.mark.req("FL-08")
def test_each_job_has_its_own_binding_toleration() -> None:
    driver = fleet(a=(COUNTING, machines(2)), b=(COUNTING, machines(1)))
    filled(driver, "a", 5, 5)
    (job,) = driver.submit(a_spec(card_milli=6000, failover=Failover(toleration_seconds=5)))
    driver.settle()
    driver.after(5 * SECOND)
    assert bound_to(driver, job) == ("b",)


@pytest.mark.req("FL-08")
def test_a_full_cluster_is_tried_again_only_when_resources_were_freed_there() -> None:
    driver = fleet(a=(COUNTING, machines(2)))
    filled(driver, "a", 5, 5)
    job, like = driver.submit(a_spec(card_milli=6000), a_spec("like", card_milli=6000))
    driver.settle()
    driver.after(TOLERATED)
    since = driver.now
    assert why(driver, job) == why(driver, like) == NoMemberPlacement(("a",), since)
    driver.after(10 * MINUTE)
    assert len(driver.bodies(events.JobPlaced)) == 1
    member = driver.members["a"]
    member.ended(next(each.id for each in member.machine.state.jobs.values() if each.part is None), code=0)
    driver.settle()
    assert driver.running(job) == 1


@pytest.mark.req("FL-07", "FL-08")
def test_a_suspended_job_is_revoked_and_waits_in_its_queue_until_released() -> None:
    """The leaf lets out one job at a time: the one that came back is behind the one that waited."""
    driver = fleet(a=(COUNTING, machines(2)))
    leaf = QuotaNode(name="leaf", max={"jobs": 1000}, namespaces=("ann",))
    driver.tell(events.QuotaApplied(QuotaTree("quota", QuotaNode(name="root", children=(leaf,)))))
    filled(driver, "a", 5, 5)
    suspended = {"suspension": Suspension(scheduling=True)}
    first, second = driver.submit(
        a_spec("first", card_milli=6000, **suspended), a_spec("second", card_milli=1000, **suspended)
    )
    driver.settle()
    assert (bound_to(driver, first), bound_to(driver, second)) == (("a",), ())
    driver.after(TOLERATED)
    (given_up,) = driver.bodies(events.BindingGivenUp)
    assert given_up.revoked
    assert driver.job(first).revoked_at == driver.now
    assert driver.running(second) == 1
    assert list(driver.machine.queue) == [first]


@pytest.mark.req("FL-08")
def test_a_returned_job_keeps_its_position_unless_it_is_revoked() -> None:
    for revoked in (False, True):
        driver = fleet(a=(COUNTING, machines(2)))
        leaf = QuotaNode(name="leaf", namespaces=("ann",))
        driver.tell(events.QuotaApplied(QuotaTree("quota", QuotaNode(name="root", children=(leaf,)))))
        filled(driver, "a", 5, 5)
        one, two = driver.submit(
            a_spec("one", card_milli=6000, suspension=Suspension(scheduling=revoked)), a_spec("two", hold=True)
        )
        driver.settle()
        driver.after(TOLERATED)
        expected = [two, one] if revoked else [one, two]
        assert list(driver.machine.queue) == expected
        assert list(Machine(driver.machine.state).queue) == expected


@pytest.mark.req("FL-05", "FL-06")
def test_no_cluster_gets_more_replicas_than_it_has_nodes_for_them() -> None:
    driver = fleet(a=(COUNTING, [*machines(2), a_node("small", cards=2)]), b=(COUNTING, machines(2)))
    (job,) = driver.submit(a_spec(nodes=4, card_milli=3000, divide_over_clusters=True))
    driver.settle()
    assert bound_to(driver, job) == ("a", "a", "b", "b")
    assert driver.running(job) == 4


@pytest.mark.req("FL-06")
def test_reasons_by_totals_name_the_missing_resource_of_the_nearest_cluster() -> None:
    driver = fleet(a=(COUNTING, machines(2)), b=(COUNTING, machines(1)))
    (job,) = driver.submit(a_spec(nodes=2, card_milli=8000))
    driver.settle()
    assert driver.running(job) == 2
    (waits,) = driver.submit(a_spec("waits", nodes=2, card_milli=5000))
    driver.settle()
    assert why(driver, waits) == ClusterShort("a", Resource.CARDS, 10, 0)


@pytest.mark.req("FL-04")
def test_a_job_that_is_only_bound_ends_at_once_when_it_is_stopped() -> None:
    driver = fleet(a=(COUNTING, machines(2)))
    filled(driver, "a", 5, 5)
    (job,) = driver.submit(a_spec(card_milli=6000))
    driver.settle()
    driver.act(decide.cancel(driver.job(job), driver.now, None))
    driver.settle()
    assert driver.job(job).state is JobState.STOPPED
    assert all(each.ended for each in driver.machines["a"].state.jobs.values() if each.part is not None)


@pytest.mark.req("FL-04")
def test_a_running_gang_is_stopped_in_every_cluster() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(1)))
    (job,) = driver.submit(a_spec(nodes=2, card_milli=8000, divide_over_clusters=True))
    driver.settle()
    driver.act(decide.cancel(driver.job(job), driver.now, None))
    driver.settle()
    assert driver.job(job).state is JobState.STOPPED
    assert [not each.machine.occupied for each in driver.members.values()] == [True, True]


@pytest.mark.req("FL-04")
def test_one_replica_s_failure_ends_the_gang_in_every_cluster() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(1)))
    (job,) = driver.submit(a_spec(nodes=2, card_milli=8000, divide_over_clusters=True))
    driver.settle()
    driver.ends_one(job, 1, code=1)
    assert driver.job(job).state is JobState.ERROR
    assert [not each.machine.occupied for each in driver.members.values()] == [True, True]


@pytest.mark.req("FL-04", "JT-18")
def test_a_failed_job_is_restarted_by_the_fleet_and_by_no_member_cluster() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(1)))
    both = {"nodes": 2, "card_milli": 8000, "divide_over_clusters": True}
    (job,) = driver.submit(a_spec(restart=Restart(max_restarts=1), **both))
    driver.settle()
    driver.ends_one(job, 1, code=1)
    again = driver.job(job)
    assert (again.state, again.retries, again.attempt.number) == (JobState.RUNNING, 1, 2)
    assert [len(each.machine.occupied) for each in driver.members.values()] == [1, 1]
    driver.ends_one(job, 0, code=1)
    assert driver.job(job).state is JobState.ERROR


@pytest.mark.req("FL-04", "JT-17")
def test_a_fleet_accepts_no_resuming_jobs() -> None:
    driver = fleet(a=(RESERVING, [a_node("n1", pool="a")]))
    resumes = a_spec(resume=Resume(max_resumes=1, grace_seconds=5), pool="a")
    refused = submit(driver.machine, [resumes], Actor(ANN, admin=False), now=driver.now)
    assert isinstance(refused, Refusal)
    assert "resume: a fleet cannot resume jobs from checkpoints" in refused.message


@pytest.mark.req("FL-04", "JT-40")
def test_a_failed_jobs_containers_are_held_in_their_clusters_until_the_fleet_releases_them() -> None:
    driver = fleet(a=(RESERVING, machines(1)))
    keeps = DebugHold(cards=HoldCards.KEEP, window_seconds=60)
    (job,) = driver.submit(a_spec(card_milli=8000, terminal=True, debug_hold=keeps))
    driver.settle()
    driver.end(job, code=1)
    (there,) = driver.parts(job).values()
    assert driver.job(job).kept
    assert driver.members["a"].job(there).kept
    driver.after(MINUTE)
    assert not driver.job(job).kept
    assert not driver.members["a"].job(there).kept


@pytest.mark.req("FL-04")
def test_the_fleet_enforces_the_time_limit() -> None:
    driver = fleet(a=(RESERVING, machines(1)))
    (job,) = driver.submit(a_spec(card_milli=8000, time_limit_seconds=600))
    driver.settle()
    driver.after(10 * MINUTE)
    assert (driver.job(job).state, driver.job(job).end_cause) == (JobState.EXPIRED, EndCause.TIME_LIMIT)


@pytest.mark.req("FL-06")
def test_cards_allocated_to_a_members_own_jobs_are_in_use() -> None:
    driver = fleet(a=(RESERVING, machines(1)))
    filled(driver, "a", 3)
    (job,) = driver.submit(a_spec(card_milli=6000))
    driver.settle()
    assert driver.job(job).state is JobState.QUEUED
    assert driver.machine.state.others["a"][0][0].node == "a/n1"


@pytest.mark.req("FL-06")
def test_a_reservation_in_a_member_is_exact_to_the_card() -> None:
    """Where the member by itself would take others: it gets exactly what the fleet decided."""
    driver = fleet(a=(RESERVING, machines(1)))
    there = Allocation(0, NodeName("n1"), 1, 1024, (CardSlice(5, None), CardSlice(6, None)))
    part = FleetPart(JobId(7), 1, (0,), (there,))
    member = driver.members["a"]
    decided = submit(
        member.machine, [a_spec(card_milli=2000, node_names=("n1",))], Actor(ANN, admin=False), now=driver.now
    )
    assert not isinstance(decided, Refusal)
    member.act([replace(each, part=part) for each in decided])
    member.schedule()
    assert member.job(JobId(1)).attempt.placement == (there,)


@pytest.mark.req("FL-06")
def test_a_fleet_restored_from_its_state_has_the_members_own_allocations() -> None:
    driver = fleet(a=(RESERVING, machines(1)))
    filled(driver, "a", 3)
    assert Machine(driver.machine.state).peek(driver.now).occupied == driver.machine.peek(driver.now).occupied != {}


@pytest.mark.req("FL-06")
def test_a_member_starts_reserved_jobs_before_its_own() -> None:
    driver = fleet(a=(RESERVING, machines(1)))
    (job,) = driver.submit(a_spec(card_milli=8000))
    driver.schedule()
    driver.members["a"].submit(a_spec("own", card_milli=8000))
    driver.settle()
    assert driver.running(job) == 1


@pytest.mark.req("TR-02")
def test_replaying_the_fleets_journal_restores_the_same_fleet() -> None:
    driver = fleet(a=(COUNTING, machines(2)), b=(COUNTING, machines(1)))
    filled(driver, "a", 5, 5)
    driver.submit(a_spec(card_milli=6000), a_spec("other", card_milli=2000))
    driver.settle()
    driver.after(TOLERATED)
    again = Machine(type(driver.machine.state)())
    for record in driver.journal:
        again.handle(record)
    assert again.state == driver.machine.state


@pytest.mark.req("JT-49", "FL-01")
def test_a_member_receives_the_resolved_entries_of_the_fleets_catalogue() -> None:
    driver = fleet(north=(RESERVING, machines(2)))
    driver.tell(
        events.CatalogueChanged(
            (
                AlgorithmEntry(name="vit", access=Access.RO, path="/algo/vit"),
                ModelEntry(name="bert", access=Access.RO, source=ModelSource.PRETRAINED, path="/models/bert"),
                SpecEntry(name="two", access=Access.RO, spec=NodeSpec(card_milli=2000)),
                PoolEntry(name="second", access=Access.RO, nodes=("north/n2",)),
                ImageEntry(name="torch", access=Access.RO, image="dir:/roots/torch", mpi=Mpi.MPICH),
            )
        )
    )
    named = a_spec(
        algorithm=Algorithm(name="vit", read_only=True),
        models=(Model(name="bert", source=ModelSource.PRETRAINED),),
        specs=(NodeSpec(name="two"),),
        pool="second",
        image="torch",
    )
    (job,) = driver.submit(named)
    driver.settle()
    ((member, there),) = driver.parts(job).items()
    part = driver.members[member].job(there)
    assert [each.folder for _, each in part.spec.references()] == ["/algo/vit", "/models/bert"]
    assert part.spec.specs == (NodeSpec(card_milli=2000),)
    assert (part.spec.root_image, part.spec.image_mpi) == ("dir:/roots/torch", Mpi.MPICH)
    assert part.attempt is not None
    assert [each.node for each in part.attempt.placement] == ["n2"]
