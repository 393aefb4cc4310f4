"""Every `fixtures/scenarios/*.toml`: a cluster, what runs on it, what waits, and what one cycle must say of each job.

nodes        name, cpus, memory_gib; cards = "8 A100" or "8 A100 in 4 slices"; pool, driver_version, state
running      name, on (its nodes), limit; cpus, cards and owner as below; all started at the same moment, now
jobs         in order of submission: name, nodes, cpus, memory_gib, cards (a number, or a fraction of one card), models;
             or specs = [{…}, …] as alternatives; pins, pool, driver_version, exclusive, limit, held_by;
             user, account, qos, partitions, reservation, begin_in; after = [{kind, job}] (a job's name);
             task = {array, index, at_once}; priority (the word), nice, direct_priority, waited (for how long only room
             and priority have kept it).
             `starts` names its nodes (and `in_partition` where); or `waits` gives the reason and any of its data
             (`nearest` and `free` are of the nearest node; `ahead` and `job` are a job's name); `reserved` says in how
             long it starts at the latest. `workers = "1 2 8"`: an elastic job with min, workers and max;
             `resumes_after = "5m"`: one that goes on from a checkpoint.
partitions, qos, accounts, users, reservations: as in the model (`max_time = "1h"`; an account's parent is root unless
             given; reservations have start_in and end_in); enforce, login_pool: as in slurm.conf
quota        the root of a quota tree, in a manifest's words; jobs then have a project, and suspended
priority     as in slurm.conf: kind, weights, max_age, …; `order`: the names of all jobs, the best first
usage        account and user, or qos; billed = "1h", minutes = {cpu = 60}, wall = "1h": decayed use
policy       backfill: kind, window_seconds, resolution_seconds, depth; fraction_fit
preemption   as in slurm.conf: kind, mode, exempt_seconds; `evicts`: {job, for, mode} of all who give way, in order,
             with the ranks of the workers where a job shrinks, and `grace` where it matters
grows        by name of a running job the nodes of the workers that it takes
next_in      after how long time alone may change something
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.sched.policy import Policy
from tests.scenarios.reading import read_job, read_node, read_record, read_rules, read_spec, read_workers, seconds, some
from tests.sched.world import World, spec_of

FOLDER = Path(__file__).parents[2] / "fixtures" / "scenarios"


def start_running(world: World, table: dict) -> None:
    on = tuple(table["on"])
    spec = spec_of(read_spec(table), nodes=len(on), pins=on, limit=seconds(table["limit"]))
    job = world.submit_spec(spec, **read_record(table, {}))
    assert [start.job for start in world.run().starts] == [job], f"{table['name']} does not fit where it is said to run"


def told(reason, names: dict) -> dict:
    """A reason's data as a scenario writes them."""
    data = msgspec.json.decode(msgspec.json.encode(reason))
    data["reason"] = data.pop("type")
    if nearest := data.get("nearest"):
        data["nearest"], data["free"] = nearest[0]["node"], nearest[0]["free"]
    for name in {"ahead", "job"} & data.keys():
        data[name] = names.get(data[name], "")
    if data["reason"] == "making_room":
        data["jobs"] = [names[job] for job in data["jobs"]]
    for moment in {"begin_at", "start_at", "end_at", "reserved_at"} & data.keys():
        data[moment.replace("_at", "_in")] = data[moment] // 1000 if data[moment] is not None else None
    return data


@pytest.mark.req("SC-03", "SC-07", "SC-10")
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    scenario = tomllib.loads(path.read_text())
    policy = msgspec.convert(scenario.get("policy", {}), Policy)
    world = World(*map(read_node, scenario["nodes"]), policy=policy, **read_rules(scenario))
    running = scenario.get("running", ())
    for table in running:
        start_running(world, table)
    for number, table in enumerate(running, 1):
        spec = replace(world.jobs[JobId(number)].spec, node_names=(), **read_workers(table))
        world.change_running(JobId(number), spec=spec)
    asked: dict = {}
    for table in scenario["jobs"]:
        ids = {each["name"]: job for job, each in asked.items()}
        asked[world.submit_spec(read_job(table), **read_record(table, ids))] = table
    names = {job: table["name"] for job, table in asked.items()}
    plan = world.run()
    named = names | {number: table["name"] for number, table in enumerate(scenario.get("running", ()), 1)}
    evicted = [(named[each.job], named[each.for_job], each.mode, each.ranks) for each in plan.evictions]
    assert evicted == [
        (each["job"], each["for"], each["mode"], tuple(each.get("ranks", ()))) for each in scenario.get("evicts", ())
    ]
    asked_grace = {each["job"]: seconds(each["grace"]) for each in scenario.get("evicts", ()) if "grace" in each}
    assert asked_grace == {
        named[each.job]: each.grace_seconds for each in plan.evictions if named[each.job] in asked_grace
    }
    grown = {named[each.job]: [part.node for part in each.placement] for each in plan.growths}
    assert grown == scenario.get("grows", {})
    partitions = {start.job: start.partition for start in plan.starts}
    for job, table in asked.items():
        nodes = [part.node for part in world.occupied.get(job, ())]
        assert nodes == table.get("starts", []), table["name"]
        if not nodes:
            reason = told(world.reason(job), named)
            assert some(reason, *table["waits"]) == table["waits"], table["name"]
        elif "in_partition" in table:
            assert partitions[job] == table["in_partition"]
    if "order" in scenario:
        assert [names[job] for job in plan.order] == scenario["order"]
    if "next_in" in scenario:
        assert plan.next_at == 1000 * seconds(scenario["next_in"])
    reserved = {table["name"]: 1000 * seconds(table["reserved"]) for table in asked.values() if "reserved" in table}
    assert reserved == {names[each.job]: each.reserved_at for each in plan.reservations}


def test_every_scenario_is_found() -> None:
    assert len(list(FOLDER.glob("*.toml"))) >= 12
