"""What makes a cluster of a fleet reserve."""

from __future__ import annotations

import pytest

from cockpit.model.fleet import BindingMode, Member, member_of, node_in, node_there, version
from cockpit.model.ids import NodeName

GOOD = {"kubernetes": "1.28", "scheduler": "6.8.0", "enable_reservation": True}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("1.28", (1, 28)), ("v1.30.1-aliyun.1", (1, 30, 1)), ("6.10.0", (6, 10, 0)), ("1.28+", (1, 28)), ("", ())],
)
@pytest.mark.req("FL-06")
def test_versions_are_compared_by_their_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert version(text) == numbers


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({}, ""),
        ({"kubernetes": "v1.30.1-aliyun.1", "scheduler": "6.10.2"}, ""),
        ({"kubernetes": "1.27.9"}, "Kubernetes 1.27.9 is older than 1.28"),
        ({"kubernetes": ""}, "Kubernetes  is older than 1.28"),
        ({"scheduler": "6.7.12"}, "scheduler 6.7.12 is older than 6.8.0"),
        ({"enable_reservation": False}, "enableReservation is not true"),
    ],
)
@pytest.mark.req("FL-06")
def test_a_cluster_reserves_only_with_all_that_it_needs(changed: dict[str, object], missing: str) -> None:
    member = Member(name="cn-1", **{**GOOD, **changed})
    assert member.why_totals == missing
    assert member.mode is (BindingMode.TOTALS if missing else BindingMode.RESERVATION)


@pytest.mark.req("FL-06")
def test_the_fleets_name_of_a_node_begins_with_its_member() -> None:
    node = node_in("cn-1", NodeName("gpu/07"))
    assert node == "cn-1/gpu/07"
    assert (member_of(node), node_there(node)) == ("cn-1", "gpu/07")
    assert member_of(NodeName("cn-1")) == "cn-1"
