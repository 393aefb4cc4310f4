"""An elastic job for real: it grows into what comes free, gives up a worker for another's sake, and grows again; its
workers see each other come and go, also across the death of the engine."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

RULES = """
overcommit = true
nodes = [
    { name = "n1", cpus = 1, memory = "128M" },
    { name = "n2", cpus = 1, memory = "128M" },
    { name = "n3", cpus = 1, memory = "128M" },
]

[preemption]
type = "preempt/qos"
mode = ["REQUEUE"]

[[qos]]
name = "low"
grace_time = "60s"

[[qos]]
name = "high"
priority = 9
preempt = ["low"]
"""
ONE = [{"cpus": 1, "memory": "64M"}]
WAITS = "while [ ! -e /workspace/outputs/gate ]; do sleep 0.05; done"
WATCHES = """
trap 'echo was asked; exit 1' TERM
seen=/workspace/outputs/seen.$COCKPIT_REPLICA
while :; do
    cp $COCKPIT_WORKERS_FILE $seen.new && mv $seen.new $seen
    ! grep -q '{"replica":'$COCKPIT_REPLICA',"kill_at"' $seen || { echo saved; exit 255; }
    sleep 0.1
done
"""
FAILS_ONCE = """
echo worker $COCKPIT_REPLICA
[ $COCKPIT_REPLICA != 1 ] || exit 7
while [ ! -e /workspace/outputs/gate ]; do sleep 0.05; done
"""


def world(user: CockpitUser, replica: int) -> dict[str, Any]:
    """As this worker has seen it last."""
    with suppress(FileNotFoundError):
        return dict(json.loads((user.work / "out" / f"seen.{replica}").read_text()))
    return {}


def sees(user: CockpitUser, replica: int, *others: int) -> bool:
    found = world(user, replica)
    return [each["replica"] for each in found.get("workers", ())] == [*others] and found["leaving"] == []


@pytest.mark.req("EL-01", "SC-09")
def test_it_grows_gives_way_and_grows_again(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    gate = user.work / "first" / "gate"
    first = user.submit(WAITS, name="first", output="first", specs=ONE)
    user.until(first, "running")
    size = {"workers": 2, "min_workers": 1, "max_workers": 3}
    job = user.submit(WATCHES, name="train", output="out", qos="low", specs=ONE, elastic=size)
    eventually(lambda: sees(user, 1, 0, 1))
    gate.touch()
    eventually(lambda: sees(user, 0, 0, 1, 2) and sees(user, 2, 0, 1, 2))
    user.kill_engine()
    gate = user.work / "urgent" / "gate"
    urgent = user.submit(
        "while [ ! -e /workspace/outputs/gate ]; do sleep 0.05; done",
        name="urgent",
        output="urgent",
        qos="high",
        specs=ONE,
    )
    user.until(urgent, "running")
    eventually(lambda: sees(user, 0, 0, 1))
    assert user.ok("logs", f"{job}/2") == "saved\n"
    assert user.row("jobs", "--filter", f"id:{job}", "--columns", "state,nodes") == {"state": "running", "nodes": 2}
    gate.touch()
    eventually(lambda: sees(user, 3, 0, 1, 3))
    told = [row["sentence"] for row in user.rows("events", job)]
    assert "goes on without worker 2" in told
    assert [each for each in told if each.startswith("grows by")] == ["grows by 1 worker: n1"] * 2
    user.ok("cancel", job, "--now", "--yes")
    eventually(lambda: user.row("jobs", "--all", "--filter", f"id:{job}")["state"] == "stopped")


@pytest.mark.req("EL-07")
def test_another_takes_the_place_of_a_worker_that_fails(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    size = {"workers": 2, "min_workers": 2, "worker_restart_policy": "OnFailure"}
    job = user.submit(FAILS_ONCE, name="train", output="out", specs=ONE, elastic=size)
    eventually(lambda: user.run("logs", f"{job}/2").stdout == b"worker 2\n")
    assert user.ok("logs", f"{job}/1") == "worker 1\n"
    (user.work / "out" / "gate").touch()
    assert user.wait(job) == 0
    row = user.row("jobs", "--all", "--filter", f"id:{job}")
    assert (row["state"], row["attempt"], row["retries"]) == ("succeeded", 1, 1)
    told = [row["sentence"] for row in user.rows("events", job)]
    assert "worker 1 failed, and worker 2 takes its place, retry 1" in told
