"""Licences in the plan of a Slurm cluster's copy: a job that there are none for is not planned."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.backends.slurm.mapping import licences
from cockpit.backends.slurm.mapping.cluster import NO_LICENCES, ClusterLists, state
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.licences import Licence, LicenceQueue, alternatives
from cockpit.backends.slurm.mapping.records import records_of_key
from cockpit.model.cluster import Cluster
from cockpit.model.ids import JobId, Millis
from tests.backends.slurm.test_values import a_record

pytestmark = pytest.mark.req("SL-11", "SL-14")
PRINTED = (
    "LicenseName=fluent@flex Total=5 Used=4 Free=0 Reserved=1 Remote=yes\n"
    "LicenseName=matlab Total=4 Used=1 Free=3 Reserved=0 Remote=no\n"
)
KNOWN = tuple(licences.licences(records_of_key(PRINTED, licences.KEY)))


def job(number: int, wants: str, priority: int = 100, **fields: Any) -> Listed:
    record = {"JobID": str(number), "State": "PENDING", "NodeList": "", "Licenses": wants}
    return Listed(a_record(**{**record, "PriorityLong": str(priority), "Reason": "Priority", **fields}))


def held(*jobs: Listed, known: tuple[Licence, ...] = KNOWN) -> set[int]:
    """The jobs that are not planned for want of a licence."""
    made = state(ClusterLists(Millis(0), Cluster(), (), jobs, licences=known), as_ranked=True)
    return {each.id for each in made.jobs.values() if each.held_by == NO_LICENCES}


def test_what_is_reserved_or_used_elsewhere_is_not_free() -> None:
    assert [(each.name, each.free) for each in KNOWN] == [("fluent@flex", 0), ("matlab", 3)]
    assert licences.usage_text(KNOWN, {"fluent@flex": 1}) == "fluent@flex: 4 of 5 in use, 1 asked"


def test_a_request_may_name_several_licences_or_one_of_several() -> None:
    assert alternatives("a:2,b") == ({"a": 2, "b": 1},)
    assert alternatives("a:2|b@x:1") == ({"a": 2}, {"b@x": 1})
    assert alternatives("(null)") == alternatives("N/A") == ()


def test_licences_go_to_jobs_in_the_order_of_their_priorities() -> None:
    assert held(job(1, "matlab:2", 10), job(2, "matlab:2", 20), job(3, "", 5)) == {1}
    assert held(job(1, "fluent@flex:1")) == {1}
    assert held(job(1, "fluent@flex:1|matlab:1")) == set()


def test_jobs_that_cannot_start_leave_their_licences_to_others() -> None:
    assert held(job(1, "matlab:3", 20, Reason="BeginTime"), job(2, "matlab:3", 10)) == {1}


def test_as_many_tasks_of_an_array_are_planned_as_have_licences() -> None:
    array = job(9, "matlab:1", ArrayJobID="9", ArrayTaskID="0-4")
    assert len(held(array)) == 2
    assert LicenceQueue(KNOWN, [array]).enough == {array.id: 3}


def test_a_licence_that_is_not_known_is_not_assumed() -> None:
    assert held(job(1, "matlab:1"), known=()) == {1}


def test_a_new_job_comes_behind_all_others() -> None:
    queue = LicenceQueue(KNOWN, [job(1, "matlab:2")])
    assert queue.has_left(alternatives("matlab:1"))
    assert not queue.has_left(alternatives("matlab:2"))
    assert queue.has_left(())
    assert JobId(1) in queue.enough


def test_figures_that_slurm_does_not_print_count_as_nothing() -> None:
    (known,) = licences.licences([{licences.KEY: "matlab", "Total": "4"}])
    assert (known.total, known.used, known.withheld, known.free) == (4, 0, 0, 4)
    (unknown,) = licences.licences([{licences.KEY: "matlab"}, {"Total": "9"}])
    assert unknown == Licence("matlab", 0, 0)
