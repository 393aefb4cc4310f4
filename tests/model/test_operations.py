"""How a typed method becomes an operation: its arguments on the wire, its answer, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from cockpit.model.operations import Operation, Right, Style, operation, operations_of


class Named(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    limit: int = 0
    wait: bool = False
    kind: str = ""


class Count(msgspec.Struct, frozen=True):
    count: int


class Declared:
    @operation(Right.ASK, Style.WAITS, lambda: Named)
    async def follow(self, names: list[str], *, limit: int = 0, wait: bool = False) -> int:
        raise NotImplementedError

    @operation(Right.ACT, Style.CHANGES, lambda: Named, constant={"kind": "jobs"}, wrapped=lambda: Count)
    async def stop(self, named: Named) -> int:
        raise NotImplementedError

    @operation(Right.LOOK, Style.LISTS, lambda: Named)
    async def rows(self, names: list[str]) -> list[int]:
        raise NotImplementedError

    @operation(Right.LOOK, Style.READS, lambda: Named, join=lambda pieces: b"".join(map(bytes, pieces)))
    async def text(self, names: list[str]) -> bytes:
        raise NotImplementedError

    async def other(self) -> None:
        raise NotImplementedError


FOLLOW, STOP, ROWS, TEXT = operations_of(Declared)


class Recorder(Declared):
    """Answers each operation with its name and the arguments that it was called with."""

    async def perform(self, called: Operation, given: Mapping[str, Any]) -> Any:
        return called.name, dict(given)


@pytest.mark.req("TR-09")
def test_each_method_with_a_description_is_an_operation_in_the_order_of_the_declaration() -> None:
    assert [(each.name, each.right, each.style) for each in (FOLLOW, STOP, ROWS, TEXT)] == [
        ("follow", Right.ASK, Style.WAITS),
        ("stop", Right.ACT, Style.CHANGES),
        ("rows", Right.LOOK, Style.LISTS),
        ("text", Right.LOOK, Style.READS),
    ]
    assert FOLLOW.parameters == ("names", "limit", "wait")


@pytest.mark.req("TR-09")
async def test_a_call_is_carried_out_with_its_arguments_by_name() -> None:
    assert await Recorder().follow(["a"], wait=True) == ("follow", {"names": ["a"], "wait": True})
    assert Declared.follow.__name__ == "follow"


@pytest.mark.req("TR-09")
def test_arguments_are_sent_in_their_type_with_tuples_for_lists_and_what_is_always_sent() -> None:
    assert FOLLOW.arguments({"names": ["a", "b"], "limit": 2}) == Named(("a", "b"), 2)
    assert STOP.arguments({"names": ["a"]}) == Named(("a",), kind="jobs")
    whole = Named(("a",))
    assert STOP.arguments({"named": whole}) is whole
    assert STOP.arguments({"names": ("a",), "limit": 3}) == Named(("a",), 3, kind="jobs")


@pytest.mark.req("TR-09")
def test_an_answer_of_one_field_is_unwrapped_into_the_result() -> None:
    assert (STOP.answer_type(), STOP.result(Count(4))) == (Count, 4)
    assert (FOLLOW.answer_type(), FOLLOW.result(4)) == (int, 4)


@pytest.mark.req("PF-18")
def test_the_pieces_of_a_list_are_joined_in_their_order_or_by_the_operation_itself() -> None:
    pieces = [msgspec.msgpack.encode(piece) for piece in ([1, 2], [3])]
    assert ROWS.joined(pieces) == [1, 2, 3]
    assert TEXT.joined([b"ab", b"c"]) == b"abc"


@pytest.mark.req("TR-04")
def test_only_an_operation_that_waits_may_take_any_time_and_only_if_it_is_asked_to_wait() -> None:
    assert FOLLOW.takes_time(Named(("a",), wait=True))
    assert not FOLLOW.takes_time(Named(("a",)))
    assert FOLLOW.takes_time(Count(1))
    assert not ROWS.takes_time(Named(("a",), wait=True))
