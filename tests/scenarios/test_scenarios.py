"""Every `fixtures/scenarios/*.toml`: a cluster, what runs on it, what waits, and what one cycle must say of each job.

nodes    name, cpus, memory_gib; cards = "8 A100" or "8 A100 in 4 slices"; pool, driver_version, state
running  name, on (its nodes), limit; cpus, cards as below; all started at the same moment, now
jobs     in order of submission: name, nodes, cpus, memory_gib, cards (a number, or a fraction of one card), models;
         or specs = [{…}, …] as alternatives; pins, pool, driver_version, exclusive, limit, held_by.
         `starts` names its nodes; or `waits` gives the reason and any of its data (`nearest` and `free` are of the
         nearest node, `ahead` is a job's name); `reserved` says in how long it starts at the latest.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from cockpit.model.node import NodeState
from cockpit.model.spec import NodeSpec
from cockpit.sched.policy import Policy
from tests.sched.world import World, cards, node, spec_of

FOLDER = Path(__file__).parents[2] / "fixtures" / "scenarios"
NODE_FIELDS = ("pool", "driver_version")
JOB_FIELDS = ("nodes", "pool", "driver_version", "exclusive")
SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def seconds(text: str) -> int:
    return sum(int(number) * SECONDS[unit] for number, unit in re.findall(r"(\d+)([dhms])", text))


def some(table: dict, *names: str) -> dict:
    return {name: table[name] for name in names if name in table}


def read_node(table: dict):
    count, model, slices = re.fullmatch(r"(\d+) (\S+)(?: in (\d+) slices)?", table.get("cards", "0 none")).groups()
    return node(
        table["name"],
        cards(int(count), model, slices=int(slices or 0)),
        cpus=table["cpus"],
        memory_mib=1024 * table["memory_gib"],
        state=NodeState(table.get("state", "up")),
        **some(table, *NODE_FIELDS),
    )


def read_spec(table: dict) -> NodeSpec:
    return NodeSpec(
        cpus=table.get("cpus", 1),
        memory_mib=1024 * table.get("memory_gib", 1),
        card_milli=round(1000 * table.get("cards", 0)),
        card_models=tuple(table.get("models", ())),
    )


def read_job(table: dict):
    specs = map(read_spec, table.get("specs", [table]))
    limit, pins = seconds(table.get("limit", "1h")), tuple(table.get("pins", ()))
    return spec_of(*specs, limit=limit, pins=pins, **some(table, *JOB_FIELDS))


def start_running(world: World, table: dict) -> None:
    on = tuple(table["on"])
    job = world.submit_spec(spec_of(read_spec(table), nodes=len(on), pins=on, limit=seconds(table["limit"])))
    assert [start.job for start in world.run().starts] == [job], f"{table['name']} does not fit where it is said to run"


def told(reason, names: dict) -> dict:
    """A reason's data as a scenario writes them."""
    data = msgspec.json.decode(msgspec.json.encode(reason))
    data["reason"] = data.pop("type")
    if nearest := data.get("nearest"):
        data["nearest"], data["free"] = nearest[0]["node"], nearest[0]["free"]
    if "ahead" in data:
        data["ahead"] = names[data["ahead"]]
    return data


@pytest.mark.req("SC-04", "SC-05", "SC-13")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    scenario = tomllib.loads(path.read_text())
    policy = msgspec.convert(scenario.get("policy", {}), Policy)
    world = World(*map(read_node, scenario["nodes"]), policy=policy)
    for table in scenario.get("running", ()):
        start_running(world, table)
    asked = {world.submit_spec(read_job(table), held_by=table.get("held_by", "")): table for table in scenario["jobs"]}
    names = {job: table["name"] for job, table in asked.items()}
    plan = world.run()
    for job, table in asked.items():
        nodes = [part.node for part in world.occupied.get(job, ())]
        assert nodes == table.get("starts", []), table["name"]
        if not nodes:
            reason = told(world.reason(job), names)
            assert some(reason, *table["waits"]) == table["waits"], table["name"]
    reserved = {table["name"]: 1000 * seconds(table["reserved"]) for table in asked.values() if "reserved" in table}
    assert reserved == ({names[plan.reservation.job]: plan.reservation.reserved_at} if plan.reservation else {})


def test_every_scenario_is_found() -> None:
    assert len(list(FOLDER.glob("*.toml"))) >= 12
