from __future__ import annotations

import pytest

from cockpit.model.cluster import Backfill, BackfillKind, Reservation
from cockpit.model.ids import Millis
from cockpit.model.reasons import (
    InReservation,
    NodesReserved,
)
from cockpit.sched.nodes.reservation_windows import ReservationWindows
from cockpit.sched.policy import Policy
from tests.sched.lab import starts
from tests.sched.world import World, node, wants

HOUR = 3600


def reserved(name: str, nodes: tuple[str, ...], start: int, end: int, **fields) -> dict[str, Reservation]:
    return {name: Reservation(name=name, nodes=nodes, start_at=1000 * start, end_at=1000 * end, **fields)}


@pytest.mark.req("SC-10")
def test_nodes_reserved_for_later_accept_only_jobs_that_end_by_then() -> None:
    here = World(node("n1"), reservations=reserved("r", ("n1",), HOUR, 2 * HOUR, users=("bob",)))
    long, right = here.submit(limit=HOUR + 1), here.submit(limit=HOUR)
    assert [start.job for start in here.cycle().starts] == [right]
    assert here.reason(long) == NodesReserved("r", Millis(1000 * HOUR), Millis(2000 * HOUR))
    here.now = Millis(2000 * HOUR)
    assert starts(here, long)


@pytest.mark.req("SC-10")
def test_other_nodes_are_used_during_a_reservation() -> None:
    here = World(node("n1"), node("n2"), reservations=reserved("r", ("n1",), 0, HOUR, users=("bob",)))
    job = here.submit(wants(cpus=16))
    (start,) = here.run().starts
    assert (start.job, [part.node for part in start.placement]) == (job, ["n2"])
    waits = here.submit(wants(cpus=16), limit=60)
    here.cycle()
    assert here.reason(waits) == NodesReserved("r", Millis(0), Millis(1000 * HOUR))
    here.change_rules(reservations={})
    assert starts(here, waits)


@pytest.mark.req("SC-10")
def test_a_job_that_names_a_reservation_runs_only_in_it() -> None:
    here = World(node("n1"), node("n2"), reservations=reserved("r", ("n2",), 10, HOUR + 10, users=("ann",)))
    job = here.submit(reservation="r", limit=HOUR)
    here.cycle()
    assert here.reason(job) == InReservation("r", Millis(10_000))
    here.now = Millis(10_000)
    (start,) = here.cycle().starts
    assert [part.node for part in start.placement] == ["n2"]
    here.now = Millis(10_001)
    here.cycle()
    assert here.reason(job) == InReservation("r", end_at=Millis(1000 * (HOUR + 10)))
    here.now = Millis(1000 * (HOUR + 10))
    here.cycle()
    assert here.reason(job) == InReservation("r")


@pytest.mark.req("SC-10")
@pytest.mark.parametrize(
    ("fields", "may"),
    [
        ({"users": ("ann",)}, True),
        ({"users": ("bob",)}, False),
        ({"accounts": ("nlp",)}, True),
        ({"accounts": ("cv",)}, False),
        ({"users": ("ann",), "accounts": ("nlp",)}, True),
        ({"users": ("ann",), "accounts": ("cv",)}, False),
        ({}, False),
        ({"users": ("ann",), "maintenance": True}, False),
    ],
)
def test_users_and_accounts_that_may_use_a_reservation(fields, may) -> None:
    here = World(node("n1"), reservations=reserved("r", ("n1",), 0, 2 * HOUR, **fields))
    job = here.submit(reservation="r", record={"account": "nlp"})
    assert starts(here, job) is may
    assert may or here.reason(job) == InReservation("r")


@pytest.mark.req("SC-10")
def test_inside_one_reservation_a_job_still_does_not_run_into_another() -> None:
    both = reserved("mine", ("n1",), 0, 9 * HOUR, users=("ann",)) | reserved(
        "disks", ("n1",), HOUR, 2 * HOUR, maintenance=True
    )
    here = World(node("n1"), reservations=both)
    long, right = here.submit(reservation="mine", limit=HOUR + 1), here.submit(reservation="mine", limit=HOUR)
    assert [start.job for start in here.cycle().starts] == [right]
    assert here.reason(long).name == "disks"


@pytest.mark.req("SC-13")
def test_of_two_reservations_in_the_way_removing_the_one_named_leaves_the_other() -> None:
    both = reserved("a", ("n1",), 0, HOUR, maintenance=True) | reserved("b", ("n2",), 0, HOUR, maintenance=True)
    here = World(node("n1"), node("n2"), reservations=both)
    job = here.submit(nodes=2)
    named = []
    while not starts(here, job):
        named.append(here.reason(job).name)
        left = {name: each for name, each in here.rules["reservations"].items() if name != named[-1]}
        here.change_rules(reservations=left)
    assert sorted(named) == ["a", "b"]


@pytest.mark.req("SC-10")
def test_a_longer_job_overlaps_the_reservations_of_a_shorter_one_first() -> None:
    several = {}
    for number, start in enumerate((50, 10, 30)):
        several |= reserved(f"r{number}", ("n1",), start, 100, maintenance=True)
    bars = ReservationWindows(several, Millis(0))
    met = [bars.against(seconds) for seconds in range(60)]
    assert met[10] == ()
    assert met[11] == met[30] == ("r1",)
    assert met[59] == ("r1", "r2", "r0")
    assert all(met[bars.least_seconds(each)] == each for each in met)


@pytest.mark.req("SC-10", "SC-13")
def test_without_backfill_a_pass_follows_when_a_reservation_begins_to_keep_the_first_job_off() -> None:
    """Until then no job behind it starts; from then on the first job cannot, and keeps nothing."""
    works = reserved("works", ("n1",), HOUR, 2 * HOUR, users=("bob",))
    here = World(node("n1", cpus=4), policy=Policy(backfill=Backfill(kind=BackfillKind.OFF)), reservations=works)
    here.submit(wants(cpus=2), limit=3000)
    here.run()
    here.submit(wants(cpus=4), limit=1200)
    small = here.submit(wants(cpus=1), limit=60)
    assert not here.run().starts
    assert here.plan.next_at == 1000 * (HOUR - 1200) + 1
    here.now = here.plan.next_at
    here.version += 1
    assert [start.job for start in here.run().starts] == [small]
