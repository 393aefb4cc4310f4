"""A cluster with accounts, tiers and limits, served by one engine to several people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually
from tests.e2e.people import ANN, BOB
from tests.e2e.system_engine import SystemEngine, system_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

CLUSTER = f"""
overcommit = true
login_node_pool = "door"
prolog_bash_scripts = ["#!/bin/bash\\necho $(id -u) $SLURM_JOB_USER $SLURM_JOB_PARTITION >> /run/prologs\\n"]

[node_pools]
work = ["n1", "n2"]
door = ["d1"]

[accounting]
enforce = ["safe", "qos"]

[priority]
type = "priority/multifactor"
flags = ["ACCRUE_ALWAYS", "SMALL_RELATIVE_TO_TIME"]
weights = {{ age = 10, fairshare = 1000, partition = 500, qos = 2000, tres = "cpu=50" }}

[backfill]
type = "conservative"

[[nodes]]
name = "n1"
cpus = 6
memory = "2G"
[[nodes]]
name = "n2"
cpus = 4
memory = "2G"
[[nodes]]
name = "d1"
cpus = 64
memory = "64G"

[[partitions]]
name = "batch"
node_pools = ["work"]
default = true
max_time = "1d"
[[partitions]]
name = "express"
nodes = ["n2"]
priority_tier = 5
qos = "short"

[[qos]]
name = "short"
limits = {{ max_wall = "10m", max_submit_jobs = 1 }}
flags = ["DenyOnLimit"]
[[qos]]
name = "high"
priority = 100

[[accounts]]
name = "physics"
shares = 70
limits = {{ grp_tres = "cpu=6" }}
[[accounts]]
name = "theory"
parent = "physics"
qos = ["normal", "high"]
[[accounts]]
name = "guests"
limits = {{ max_jobs = 1 }}

[[users]]
name = "{ANN}"
account = "theory"
[[users]]
name = "{BOB}"
account = "guests"
"""
QUARTER = [{"cpus": 2, "memory": "128M"}]


@pytest.fixture(scope="module")
def engine(everybodys_python: str, people: None) -> Iterator[SystemEngine]:
    with system_engine(everybodys_python, CLUSTER) as engine:
        yield engine


@pytest.mark.req("SC-03", "SC-01", "SC-15")
def test_the_limits_of_each_users_account_are_applied(engine: SystemEngine) -> None:
    ann, bob, root = engine.ann, engine.bob, engine.root
    first = [ann.submit("sleep 300", name=f"a{number}", specs=QUARTER, time_limit="1h") for number in range(4)]
    guests = [bob.submit("sleep 300", name=f"b{number}", specs=QUARTER, time_limit="1h") for number in range(2)]
    eventually(lambda: [row["state"] for row in root.rows("jobs")].count("running") == 4)
    assert root.looked_at(first[3])["why"] == "limit GrpTRES=cpu of account physics is 6; 6 in use, 2 asked"
    assert root.looked_at(guests[1])["why"] == "limit MaxJobs of account guests is 1; 1 in use, 1 asked"
    assert "d1" not in {node for row in root.rows("jobs") for node in row["placed_on"]}
    own = ann.rows("priority")
    assert [row["id"] for row in own if row["id"]] == [int(first[3])]
    both = root.rows("priority")
    assert {(row["id"], row["user"]) for row in both} == {(int(first[3]), ANN), (int(guests[1]), BOB)}
    for line in (root.ok("explain", guests[1]), root.ok("priority", "-o", "wide")):
        assert "guests" in line
    root.ok("accounts", "modify", "guests", "MaxJobs=2")
    eventually(lambda: root.row("job", guests[1])["state"] == "running")
    root.ok("cancel", *first, *guests, "--now", "--yes")


@pytest.mark.req("SC-03", "SC-15", "JT-24")
def test_a_broken_rule_is_refused_by_name_and_the_prolog_runs_as_root(engine: SystemEngine) -> None:
    ann, bob = engine.ann, engine.bob
    for person, fields, words in (
        (
            ann,
            {"partitions": ["express"], "time_limit": "1h"},
            "limit MaxWall of qos short of partition express is 10 min",
        ),
        (bob, {"qos": "high"}, "may not use QOS high; allowed: normal"),
        (bob, {"account": "theory"}, f"{BOB} has no association in account theory"),
        (ann, {"specs": [{"cpus": 8, "memory": "128M"}]}, "asks for 8 CPUs on one node; the largest has 6"),
        (engine.carol, {}, "has no association"),
    ):
        refused = person.run("submit", str(person.job("true", name="never", **fields)))
        assert refused.returncode != 0
        assert words in refused.stderr.decode()
    job = ann.submit("id -u", name="short", partitions=["express"], time_limit="5m", specs=QUARTER)
    assert ann.wait(job) == 0
    assert f"0 {ANN} express" in (engine.machine.root / "run/prologs").read_text().splitlines()
    refused = bob.run("nodes", "drain", "n1", "--reason", "mine")
    assert b"administrator" in refused.stderr
    engine.root.ok("nodes", "drain", "n2", "--reason", "new memory")
    assert {row["name"] for row in bob.rows("nodes", "--up")} == {"n1", "d1"}
    engine.root.ok("nodes", "resume", "n2")
