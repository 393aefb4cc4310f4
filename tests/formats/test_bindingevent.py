"""The event by which a fleet's scheduler says where a job went."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.formats.bindingevent import BoundRoles, binding_message, bindings_of, read_binding

MANUAL = "Binding has been scheduled successfully. Result: {cfxxxxxx:0,[{master 1} {worker 2}]}"
DESCRIBED = f"  Normal  ScheduleBindingSucceed  4m59s  default-scheduler  {MANUAL}\n"
BOUND = (BoundRoles("cfxxxxxx", (("master", 1), ("worker", 2))),)


@pytest.mark.req("FL-04")
def test_the_manual_s_example_is_written_and_read() -> None:
    assert binding_message(bindings_of(["cfxxxxxx"] * 3)) == MANUAL
    assert read_binding(MANUAL) == BOUND
    assert read_binding(DESCRIBED) == BOUND


@pytest.mark.req("FL-04")
def test_the_master_is_the_first_replica_wherever_it_is() -> None:
    found = bindings_of(["b", "a", "a", "b"])
    assert found == (BoundRoles("b", (("master", 1), ("worker", 1))), BoundRoles("a", (("worker", 2),)))
    assert binding_message(found).endswith("Result: {b:0,[{master 1} {worker 1}], a:0,[{worker 2}]}")


@given(st.lists(st.sampled_from(["c0ffee", "cn-beijing.1", "x"]), min_size=1, max_size=40))
@pytest.mark.req("FL-04")
def test_a_written_event_is_read_back(members: list[str]) -> None:
    assert read_binding(binding_message(bindings_of(members))) == bindings_of(members)


@pytest.mark.req("FL-04")
def test_clusters_given_only_by_their_count_are_read_too() -> None:
    text = "Binding has been scheduled successfully. Result: {member1:2, member2:1}"
    assert read_binding(text) == (BoundRoles("member1", ()), BoundRoles("member2", ()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Binding failed",
        MANUAL.removesuffix("}"),
        MANUAL.replace(":0", ""),
        "Result: {a:0,[{master 1}]}",
        MANUAL + "x",
    ],
)
@pytest.mark.req("FL-04")
def test_other_text_is_no_binding_event(text: str) -> None:
    assert read_binding(text) is None
