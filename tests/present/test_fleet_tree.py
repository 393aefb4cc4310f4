"""The tree of a fleet's jobs: what unfolds to what, and what a job over several clusters says of itself."""

from __future__ import annotations

import pytest

from cockpit.model.fleetrow import FleetPodRow
from cockpit.model.ids import JobId, Millis
from cockpit.present.columns import Context
from cockpit.present.fleet_tree import fleet_lines, key_of
from cockpit.present.tables.fleet import FLEET, fleet_answer
from tests.doubles.samples import NOW
from tests.headless.test_fleet import a_row

pytestmark = pytest.mark.req("FL-09")
PARTS = [
    a_row(cluster="a", own="1", replicas=1, ready=1),
    a_row(cluster="b", own="2", replicas=2, ready=0, state="Pending"),
]


def a_pod(name: str, cluster: str, own: str) -> FleetPodRow:
    return FleetPodRow(
        job=JobId(7),
        name=name,
        cluster=cluster,
        own=own,
        ready=0,
        containers=1,
        status="Pending",
        restarts=2,
        created_at=NOW,
    )


def test_a_job_over_two_clusters_unfolds_to_its_parts_and_they_to_their_pods() -> None:
    (whole,) = fleet_lines(PARTS, (), ())
    assert (whole.cluster, whole.state, whole.ready, whole.replicas) == ("2 clusters", "mixed", 1, 3)
    assert whole.is_unfolded is False
    _, first, second = fleet_lines(PARTS, (), {key_of(whole)})
    assert [(each.level, each.cluster, each.is_unfolded) for each in (first, second)] == [
        (1, "a", False),
        (1, "b", False),
    ]
    pods = [a_pod("p-1", "b", "2"), a_pod("p-0", "a", "1")]
    lines = list(fleet_lines(PARTS, pods, {key_of(whole), key_of(second)}))
    assert [(each.level, each.name, each.restarts) for each in lines[2:]] == [(1, "pytorch-test", None), (2, "p-1", 2)]
    assert len({key_of(each) for each in lines}) == len(lines)


def test_a_job_on_one_cluster_is_one_line_and_jobs_without_an_id_are_apart() -> None:
    own = [a_row(job=JobId(0), cluster="a", own="1"), a_row(job=JobId(0), cluster="a", own="2")]
    assert [each.level for each in fleet_lines(own, (), ())] == [0, 0]
    (bound_nowhere,) = fleet_lines([a_row(cluster="", own="")], (), ())
    assert bound_nowhere.is_unfolded is None


def test_the_panel_says_what_is_known_of_a_silent_member_and_its_age() -> None:
    (row,) = fleet_lines([a_row(own="1", silence="no route", heard_at=Millis(NOW - 90_000))], (), ())
    text = "\n".join("".join(span.text for span in each) for each in fleet_answer(row, Context(now=NOW), {}, 100))
    assert "cf1 does not answer; what is shown is 1 min old: no route" in text
    cells = {column.id: "".join(s.text for s in column.drawn(row, Context(now=NOW), 20)) for column in FLEET.screen}
    assert cells["cluster"] == "✗ cf1"
