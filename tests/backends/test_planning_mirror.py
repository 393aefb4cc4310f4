"""When the copy of another scheduler's cluster is built anew, and where."""

from __future__ import annotations

import asyncio
import threading
from typing import NamedTuple

import pytest

from cockpit.backends import planning_mirror
from cockpit.backends.planning_mirror import PlanningMirror
from cockpit.engine.state import ClusterState
from cockpit.model.ids import Millis
from cockpit.model.node import Node
from cockpit.runtime.clock import VirtualClock
from tests.builders import NOON, a_node

pytestmark = pytest.mark.req("PF-20")


class Lists(NamedTuple):
    nodes: tuple[Node, ...]
    size: int
    at: Millis = NOON


class Built:
    """The states that were built, and whether the event loop's thread did it."""

    def __init__(self) -> None:
        self.in_loop: list[bool] = []
        self.mirror = PlanningMirror(VirtualClock(NOON), "far", "ann", self._state, lambda one, other: one == other)

    def _state(self, lists: Lists) -> ClusterState:
        self.in_loop.append(threading.current_thread() is threading.main_thread())
        return ClusterState(at=lists.at, nodes={each.name: each for each in lists.nodes})


def lists(*names: str, size: int) -> Lists:
    return Lists(tuple(map(a_node, names)), size)


LARGE = planning_mirror.LARGE


async def test_a_copy_is_kept_until_something_has_changed() -> None:
    built = Built()
    first = await built.mirror.nodes(lists("a", size=1))
    assert await built.mirror.nodes(lists("a", size=1)) is first
    assert [row.node.name for row in await built.mirror.nodes(lists("a", "b", size=1))] == ["a", "b"]
    assert built.in_loop == [True, True]


async def test_a_large_copy_is_built_in_a_thread_and_once_for_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning_mirror, "REST", 0)
    built, large = Built(), lists("a", size=LARGE)
    await asyncio.gather(*(built.mirror.look_at(large) for _ in range(3)))
    assert built.in_loop == [False]


@pytest.mark.parametrize(("rest", "times"), [(1_000_000, 1), (0, 2)])
async def test_a_large_copy_is_kept_for_a_while_although_something_has_changed(
    monkeypatch: pytest.MonkeyPatch, rest: int, times: int
) -> None:
    monkeypatch.setattr(planning_mirror, "REST", rest)
    built = Built()
    for names in ("a", "ab"):
        await built.mirror.look_at(lists(*names, size=LARGE))
    assert len(built.in_loop) == times
