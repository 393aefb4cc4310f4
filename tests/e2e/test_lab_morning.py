"""A lab's morning: three people, two accounts and an administrator on one machine-wide engine, with real jobs."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cockpit_user import eventually
from tests.e2e.people import ANN, BOB, CAROL
from tests.e2e.system_engine import SystemEngine, system_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

CLUSTER = """
overcommit = true
urgent_jobs = 1

[[nodes]]
name = "n01"
cpus = 2
memory = "1G"

[[nodes]]
name = "n02"
cpus = 2
memory = "1G"

[accounting]
enforce = ["associations", "limits", "qos"]

[priority]
type = "priority/multifactor"
calc_period = "1s"
weights = { fairshare = 10000, qos = 1000 }

[[partitions]]
name = "day"
default = true

[[partitions]]
name = "physics"
nodes = ["n02"]
allow_accounts = ["physics"]

[[qos]]
name = "high"
priority = 100
limits = { max_jobs = 1, max_wall = "10m" }
"""

ACCOUNTS = (
    "add biology --shares 60",
    "add physics --shares 40 GrpTRES=cpu=2",
    f"add-user {ANN} --account biology MaxSubmitJobs=6",
    f"add-user {BOB} --account biology --qos normal,high",
    f"add-user {CAROL} --account physics",
)

GATED = "until [ -e /workspace/algorithm/gate ]; do sleep 0.05; done"
SMALL: dict[str, Any] = {"specs": [{"cpus": 1, "memory": "64M"}], "time_limit": "5m"}
WHOLE_NODE: dict[str, Any] = {"specs": [{"cpus": 2, "memory": "64M"}], "time_limit": "5m"}
WHOLE_CLUSTER: dict[str, Any] = {**WHOLE_NODE, "nodes": 2, "mode": "pytorch"}


@pytest.fixture(scope="module")
def lab(everybodys_python: str, people: None) -> Iterator[SystemEngine]:
    with system_engine(everybodys_python, CLUSTER) as engine:
        refused = refusal(engine.ann, **SMALL)
        assert f"account: {ANN} has no association, and this cluster serves no one without" in refused
        for words in ACCOUNTS:
            engine.root.ok("accounts", *words.split())
        yield engine


def refusal(person: CockpitUser, **fields: Any) -> str:
    done = person.run("submit", str(person.job("true", name="refused", **fields)))
    assert (done.returncode, done.stdout) == (65, b"")
    return done.stderr.decode()


def why(person: CockpitUser, job: str) -> str:
    """The sentence of `cockpit job`."""
    person.looked_at(job)
    return person.ok("job", job).splitlines()[1]


def ended(person: CockpitUser, *jobs: str) -> None:
    assert [person.wait(job) for job in jobs] == [0] * len(jobs)


@pytest.mark.req("SC-02", "SC-03")
def test_the_user_with_less_usage_starts_first_though_submitted_later(lab: SystemEngine) -> None:
    used = lab.ann.submit("sleep 1", name="used", **WHOLE_CLUSTER)
    ended(lab.ann, used)
    blocker = lab.root.submit("sleep 900", name="blocker", account="root", **{**WHOLE_CLUSTER, "time_limit": "15m"})
    anns = lab.ann.submit("sleep 0.2", name="anns", **WHOLE_CLUSTER)
    bobs = lab.bob.submit("sleep 0.2", name="bobs", **WHOLE_CLUSTER)
    eventually(
        lambda: (
            {row["user"]: row["used"] > 0 for row in lab.root.rows("accounts") if row["user"] in {ANN, BOB}}
            == {ANN: True, BOB: False}
        )
    )
    assert [row["id"] for row in lab.root.rows("priority")] == [int(bobs), int(anns)]
    lab.root.ok("cancel", blocker, "--now", "--yes")
    ended(lab.bob, bobs)
    ended(lab.ann, anns)
    first, second = (lab.root.row("jobs", "--all", "--filter", f"id:{job}") for job in (bobs, anns))
    assert first["ended_at"] <= second["started_at"]
    assert first["submitted_at"] > second["submitted_at"]


@pytest.mark.req("SC-03", "SC-14")
def test_a_job_over_a_limit_waits_with_the_limit_as_its_reason(lab: SystemEngine) -> None:
    account = [lab.carol.submit(GATED, name=f"carols-{each}", **WHOLE_NODE) for each in "12"]
    assert why(lab.carol, account[1]) == "Limit GrpTRES=cpu of account physics is 2; 2 in use, 2 asked."
    qos = [lab.bob.submit(GATED, name=f"bobs-{each}", qos="high", **SMALL) for each in "12"]
    assert why(lab.bob, qos[1]) == "Limit MaxJobsPerUser of qos high is 1; 1 in use, 1 asked."
    long = lab.bob.submit("true", name="long", qos="high", **{**SMALL, "time_limit": "1h"})
    assert why(lab.bob, long) == "Limit MaxWall of qos high is 10 min; this job asks for 1 h and never starts."
    assert "MaxSubmitJobs" in refusal(lab.ann, array="1-7", **SMALL)
    assert "qos: may not use QOS high; allowed: normal" in refusal(lab.ann, qos="high", **SMALL)
    assert f"{ANN} has no association in account physics" in refusal(lab.ann, account="physics", **SMALL)
    lab.bob.ok("cancel", long, "--yes")
    for person, name, jobs in ((lab.carol, "carols", account), (lab.bob, "bobs", qos)):
        for each in "12":
            person.write(f"{name}-{each}/algo/gate", "")
        ended(person, *jobs)


@pytest.mark.req("SC-11", "SC-14")
def test_a_partition_refuses_other_accounts_and_urgent_jobs_are_bounded(lab: SystemEngine) -> None:
    refused = refusal(lab.bob, partitions=["physics"], **SMALL)
    assert "partition physics does not serve account biology; it serves physics" in refused
    urgent = lab.bob.submit("true", name="urgent", priority="urgent", hold=True, **SMALL)
    assert f"now they are {urgent}." in refusal(lab.bob, priority="urgent", **SMALL)
    own = lab.carol.submit("true", name="own", partitions=["physics"], priority="urgent", **SMALL)
    ended(lab.carol, own)
    assert lab.carol.row("jobs", "--all", "--filter", f"id:{own}")["placed_on"] == ["n02"]
    lab.bob.ok("release", urgent)
    ended(lab.bob, urgent)


@pytest.mark.req("SC-10")
def test_dependencies_are_obeyed_beside_the_jobs_of_other_users(lab: SystemEngine) -> None:
    array = lab.ann.submit("sleep 0.3", name="sweep", array="0-2%1", **SMALL)
    after = lab.ann.submit("true", name="after", dependencies=f"afterok:{array}", **SMALL)
    others = lab.carol.submit("true", name="others", **SMALL)
    later = lab.carol.submit("true", name="later", begin_at="now+2s", **SMALL)
    dead = lab.bob.submit("true", name="dead", **{**SMALL, "time_limit": "1s"}, deadline="now+5s", hold=True)
    refused = refusal(lab.carol, dependencies=f"afterok:{array}", **SMALL)
    assert f"dependencies: there is no job {array}" in refused
    ended(lab.carol, others, later)
    ended(lab.ann, array, after)
    tasks = [lab.ann.row("jobs", "--all", "--filter", f"id:{array}_{index}") for index in range(3)]
    assert all(one["ended_at"] <= next_one["started_at"] for one, next_one in pairwise(tasks))
    assert lab.ann.row("job", after)["started_at"] >= tasks[-1]["ended_at"]
    assert lab.bob.wait(dead) == 255
    assert "Could no longer end by its deadline." in lab.bob.ok("job", dead)


@pytest.mark.req("SC-10", "TR-09")
def test_a_maintenance_reservation_admits_jobs_that_end_before_it_and_only_administrators_change_it(
    lab: SystemEngine,
) -> None:
    span = ("--nodes", "n01,n02", "--start", "now+4m", "--duration", "1h", "--maintenance")
    assert b"Only an administrator" in lab.ann.run("reservations", "create", "mine", *span).stderr
    lab.root.ok("reservations", "create", "upkeep", *span)
    assert lab.ann.run("reservations", "end", "upkeep").returncode == 77
    long = lab.ann.submit("true", name="long", **SMALL)
    short = lab.bob.submit("true", name="short", **{**SMALL, "time_limit": "10s"})
    ended(lab.bob, short)
    assert why(lab.ann, long).startswith("Would run into reservation upkeep; its nodes are reserved from ")
    lab.root.ok("reservations", "end", "upkeep")
    ended(lab.ann, long)


@pytest.mark.req("SC-16", "TR-09")
def test_each_user_sees_own_jobs_and_changes_no_others(lab: SystemEngine) -> None:
    anns = lab.ann.submit("true", name="secret-name", hold=True, **SMALL)
    assert "secret-name" not in "".join(lab.bob.ok(*words) for words in (("jobs", "--all"), ("priority", "-o", "json")))
    assert {row["user"] for row in lab.bob.rows("accounts")} == {"", BOB}
    for words in (("job", anns), ("set-priority", anns, "urgent"), ("release", anns)):
        assert lab.bob.run(*words).returncode == 66
    for words in ("add mine", "modify biology MaxJobs=9", f"add-user {CAROL} --account biology", "remove physics"):
        assert lab.bob.run("accounts", *words.split()).returncode == 77
    lab.root.ok("accounts", "add-coordinator", "biology", BOB)
    lab.bob.ok("accounts", "modify-user", ANN, "--account", "biology", "MaxJobs=0")
    lab.ann.ok("release", anns)
    assert f"MaxJobs of user {ANN}" in why(lab.ann, anns)
    lab.bob.ok("accounts", "modify-user", ANN, "--account", "biology", "MaxJobs=-1")
    ended(lab.ann, anns)


@pytest.mark.req("SC-03", "SC-16")
def test_a_killed_engine_restarts_with_the_same_rules_usage_and_order(lab: SystemEngine) -> None:
    lab.root.ok(
        "reservations", "create", "course", "--nodes", "n01", "--start", "now+1d", "--users", ANN, "--duration", "1h"
    )
    for person in (lab.ann, lab.bob, lab.carol):
        person.submit("true", name="kept", hold=True, **SMALL)
    kept = [str(row["id"]) for row in lab.root.rows("jobs")]
    lab.root.ok("set-priority", kept[0], "4711")
    before = seen(lab.root)
    lab.root.kill_engine()
    lab.root.ok("engine", "start", "--system")
    assert seen(lab.root) == before


def seen(person: CockpitUser) -> dict[str, Any]:
    """What the rules hold; not the usage, which fades with every second."""
    lists = {name: person.rows(name) for name in ("accounts", "priority", "reservations")}
    lists["jobs"] = person.rows("jobs", "--columns", "id,user,account,qos,state,priority,reason")
    for row in lists["accounts"]:
        del row["used"]
    return lists | {"rules": json.loads(person.ok("cluster", "show", "-o", "json"))}
