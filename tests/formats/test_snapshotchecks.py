"""Snapshots that people edited: an error in a sentence, whatever contradicts what."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.backends.demo.backend import open_demo
from cockpit.backends.snapshot.backend import open_snapshot
from cockpit.errors import CockpitError, SpecErrors
from cockpit.formats.snapshotfile import read_snapshot, write_snapshot
from cockpit.model.ids import JobId, Millis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.req("TR-04")


@pytest.fixture(scope="module")
def written() -> str:
    """A snapshot of the demo, as `cockpit snapshot` writes it."""

    async def make() -> str:
        demo = await open_demo(going=False)
        try:
            return write_snapshot(await demo.backend.snapshot())
        finally:
            await demo.close()

    return asyncio.run(make())


def first(table: dict[str, Any]) -> str:
    return next(iter(table))


def running(state: dict[str, Any]) -> dict[str, Any]:
    return next(job for job in state["jobs"].values() if job["state"] == "running")


def without_root(state: dict[str, Any]) -> None:
    del state["accounts"]["associations"][
        next(k for k, e in state["accounts"]["associations"].items() if not e.get("user"))
    ]


def orphan(state: dict[str, Any]) -> None:
    state["accounts"]["associations"]["lost"] = {"account": "lost", "parent": "nowhere"}


def above_itself(state: dict[str, Any]) -> None:
    state["accounts"]["associations"]["own"] = {"account": "own", "parent": "own"}


def another_name(state: dict[str, Any]) -> None:
    state["accounts"]["associations"]["wrong"] = {"account": "root", "user": "ann"}


def no_such_qos(state: dict[str, Any]) -> None:
    next(iter(state["accounts"]["associations"].values()))["qos"] = ["none such"]


def unmatched_usage(state: dict[str, Any]) -> None:
    state["usage"]["nobody"] = {}


def no_node(state: dict[str, Any]) -> None:
    del state["nodes"][running(state)["attempt"]["placement"][0]["node"]]


def misnamed_node(state: dict[str, Any]) -> None:
    state["nodes"]["other"] = state["nodes"].pop(first(state["nodes"]))


def no_card(state: dict[str, Any]) -> None:
    for job in state["jobs"].values():
        if job["state"] == "running" and (slices := job["attempt"]["placement"][0].get("slices")):
            slices[0]["card"] = 99
            return


def no_attempt(state: dict[str, Any]) -> None:
    running(state)["attempt"] = None


def misnamed_job(state: dict[str, Any]) -> None:
    state["jobs"]["999999"] = state["jobs"].pop(first(state["jobs"]))


EDITS = [
    *(without_root, orphan, above_itself, another_name, no_such_qos, unmatched_usage, no_node, misnamed_node),
    *(no_card, no_attempt, misnamed_job),
]


def test_a_snapshot_that_cockpit_wrote_passes_the_checks(written: str) -> None:
    assert write_snapshot(read_snapshot(written, "s.json")) == written


@pytest.mark.parametrize("edit", EDITS)
def test_contradictions_are_named(written: str, edit: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(written)
    edit(document["state"])
    with pytest.raises(SpecErrors) as wrong:
        read_snapshot(json.dumps(document), "s.json")
    assert all(line.startswith("s.json: state") for line in wrong.value.errors)


@pytest.mark.parametrize(("wrong", "listed"), [(19, 19), (20, 20), (21, 21), (500, 21)])
def test_of_very_many_contradictions_the_first_are_listed(written: str, wrong: int, listed: int) -> None:
    document = json.loads(written)
    for number in range(wrong):
        document["state"]["usage"][f"nobody-{number}"] = {}
    with pytest.raises(SpecErrors) as refused:
        read_snapshot(json.dumps(document), "s.json")
    errors = refused.value.errors
    assert len(errors) == listed
    assert ("further contradictions are not listed" in errors[-1]) is (wrong > 20)


@pytest.mark.parametrize("seed", range(30))
def test_any_edited_snapshot_is_refused_or_opens_a_working_cluster(written: str, seed: int) -> None:
    chance = random.Random(seed)
    document = json.loads(written)
    for _ in range(chance.choice([1, 1, 3])):
        _edit(document["state"], chance)
    try:
        snapshot = read_snapshot(json.dumps(document), "s.json")
    except SpecErrors:
        return
    asyncio.run(asyncio.wait_for(_ask(snapshot), 60))


async def _ask(snapshot: Any) -> None:
    try:
        backend = await open_snapshot(snapshot, "ann")
    except CockpitError:
        return
    jobs = [JobId(job) for job in list(snapshot.state.jobs)[:3]]
    asks = [
        *(backend.overview, backend.jobs, backend.nodes, backend.holds, backend.queues, backend.accounts),
        *(backend.rules, backend.catalogue, backend.priorities, backend.reservations, backend.status),
        lambda: backend.spending([Millis(0), snapshot.at]),
        lambda: backend.starts(jobs),
        *((lambda job=job: backend.job(job)) for job in jobs),
        *((lambda job=job: backend.explain(job)) for job in jobs),
    ]
    for ask in asks:
        try:
            await ask()
        except CockpitError:
            continue


def _edit(value: Any, chance: random.Random) -> None:
    """Remove, rename, double or change something anywhere in it."""
    table, key = chance.choice(list(_places(value)))
    how = chance.randrange(4)
    if how == 0:
        del table[key]
    elif how == 1 and isinstance(table, dict):
        table[f"{key}x"] = table.pop(key)
    elif how == 2:
        other, there = chance.choice(list(_places(value)))
        table[key] = other[there]
    else:
        old = table[key]
        table[key] = old + chance.choice([-1, 1, 10**6]) if type(old) is int else chance.choice([None, "x", 0, [], {}])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
