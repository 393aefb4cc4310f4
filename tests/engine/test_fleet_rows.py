"""The rows of an embedded fleet's table."""

from __future__ import annotations

import pytest

from cockpit.engine.fleet.rows import fleet_shown, own_job
from cockpit.model.fleetrow import FleetJobRow
from cockpit.model.refusal import Refusal
from tests.builders import a_spec
from tests.engine.fleet_driver import COUNTING, RESERVING, FleetDriver
from tests.engine.test_fleet import TOLERATED, filled, fleet, machines

pytestmark = pytest.mark.req("FL-09")


def shown(driver: FleetDriver) -> list[FleetJobRow]:
    return list(fleet_shown(driver.machine, driver.machines, lambda _: True, driver.now).jobs)


def brief(row: FleetJobRow) -> tuple[str, str, str, str, bool, int, int]:
    return row.name, row.cluster, row.state, row.fleet_state, row.adopted, row.ready, row.replicas


def test_a_divided_job_has_a_row_for_each_cluster_with_both_states() -> None:
    driver = fleet(a=(RESERVING, machines(1)), b=(RESERVING, machines(2)))
    (job,) = driver.submit(a_spec("gang", nodes=3, card_milli=8000, divide_over_clusters=True))
    driver.settle()
    assert list(map(brief, shown(driver))) == [
        ("gang", "a", "running", "running", True, 1, 1),
        ("gang", "b", "running", "running", True, 2, 2),
    ]
    pods = fleet_shown(driver.machine, driver.machines, lambda _: True, driver.now, pods=True).pods
    assert [(pod.name, pod.cluster, pod.status, pod.rank, pod.node) for pod in pods] == [
        ("gang-0", "a", "Running", 0, "n1"),
        ("gang-1", "b", "Running", 1, "n1"),
        ("gang-2", "b", "Running", 2, "n2"),
    ]
    found = own_job(driver.job(job), driver.machines, "b")
    assert not isinstance(found, Refusal)
    assert (found[0], found[1].spec.nodes) == ("b", 2)


def test_a_job_without_a_cluster_and_jobs_of_the_members_own() -> None:
    driver = fleet(a=(RESERVING, machines(1)))
    filled(driver, "a", 8)
    (job,) = driver.submit(a_spec("waits", card_milli=8000))
    driver.settle()
    own, direct = map(brief, shown(driver))
    assert own == ("waits", "", "", "queued", False, 0, 1)
    assert direct[1:] == ("a", "running", "", False, 1, 1)
    refused = own_job(driver.job(job), driver.machines, "")
    assert isinstance(refused, Refusal)
    assert refused.message == f"No cluster has an object of job {job}: it is bound to no cluster yet."


def test_both_states_differ_while_a_member_has_not_placed_its_part() -> None:
    driver = fleet(a=(COUNTING, machines(2)))
    filled(driver, "a", 5, 5)
    (job,) = driver.submit(a_spec("bound", card_milli=6000))
    driver.settle()
    (row,) = (each for each in shown(driver) if each.name == "bound")
    assert (row.cluster, row.state, row.fleet_state, row.ready) == ("a", "queued", "starting", 0)
    driver.after(TOLERATED)
    (row,) = (each for each in shown(driver) if each.name == "bound")
    assert (row.cluster, row.state, row.fleet_state, row.adopted) == ("", "", "queued", False)
    assert own_job(driver.job(job), driver.machines, "nowhere") == Refusal(
        kind="not_found", message="The fleet has no member 'nowhere'; its members are a."
    )


def test_hidden_jobs_and_ended_ones_are_left_out() -> None:
    driver = fleet(a=(RESERVING, machines(1)))
    (job,) = driver.submit(a_spec("secret", card_milli=8000))
    driver.settle()
    assert fleet_shown(driver.machine, driver.machines, lambda _: False, driver.now).jobs == ()
    driver.end(job, code=0)
    assert shown(driver) == []
    named = fleet_shown(driver.machine, driver.machines, lambda _: True, driver.now, only={job})
    assert [(row.state, row.fleet_state) for row in named.jobs] == [("succeeded", "succeeded")]
