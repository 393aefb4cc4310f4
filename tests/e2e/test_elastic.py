"""An elastic job for real: it grows into what comes free, gives up a worker for another's sake, and grows again; its
workers see each other come and go, also across the death of the engine."""

from __future__ import annotations

import json
from contextlib import suppress
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.runtime.clock import SystemClock
from tests.doubles.http_service import HttpService
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
def test_an_elastic_job_grows_shrinks_for_another_and_grows_again(user: CockpitUser) -> None:
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
    assert "continues without replica 2" in told
    assert [each for each in told if each.startswith("grows by")] == ["grows by 1 worker: n1"] * 2
    user.ok("cancel", job, "--now", "--yes")
    eventually(lambda: user.row("jobs", "--all", "--filter", f"id:{job}")["state"] == "stopped")


@pytest.mark.req("EL-07")
def test_a_failed_worker_is_replaced(user: CockpitUser) -> None:
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
    assert "replica 1 ended, and replica 2 takes its place, retry 1" in told


SMALL = {"specs": ONE, "mode": "horovod"}
LAUNCHES = """
# where horovodrun would stand
echo launcher has $workers $gpus $minWorkers $maxWorkers on $(hostname)
while [ ! -e /workspace/outputs/gate ]; do
    /etc/edl/discover_hosts.sh > /tmp/hosts && cp /tmp/hosts /workspace/outputs/hosts
    sleep 0.1
done
for each in $(cut -d: -f1 /tmp/hosts); do ssh $each 'echo from $(hostname) of $COCKPIT_REPLICA'; done
"""
ENDS_SLEEP = "for each in /proc/[0-9]*; do ! grep -q ^sleep $each/cmdline || kill ${each#/proc/}; done"
SAVES = """
while [ ! -e /workspace/outputs/gate ]; do
    if grep -q '"workers":\\[\\],' $COCKPIT_WORKERS_FILE; then
        [ $COCKPIT_REPLICA != 0 ] || echo saved > $COCKPIT_CHECKPOINTS/checkpoint
        exit 255
    fi
    sleep 0.05
done
echo resumed $COCKPIT_RESUME, $(cat $COCKPIT_CHECKPOINTS/checkpoint)
"""
ANSWERS_ONCE = """
[ $COCKPIT_REPLICA != 1 ] || touch $COCKPIT_PULSE_FILE
while [ ! -e /workspace/outputs/gate ]; do sleep 0.05; done
"""


def discovered(user: CockpitUser) -> list[str]:
    with suppress(FileNotFoundError):
        return (user.work / "out" / "hosts").read_text().splitlines()
    return []


@pytest.mark.req("EL-06", "JT-26", "EL-05")
def test_a_launcher_connects_to_its_workers_and_continues_without_one(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    size = {"workers": 2, "max_workers": 2}
    job = user.submit(LAUNCHES, name="tune", output="out", elastic=size, **SMALL)
    eventually(lambda: discovered(user) == ["tune-worker-0:1", "tune-worker-1:1"])
    assert user.ok("logs", f"{job}/0") == "launcher has 2 1 1 2 on tune-launcher\n"
    user.run("shell", f"{job}/2", "--", "sh", "-c", ENDS_SLEEP)  # which ends with its container
    eventually(lambda: discovered(user) == ["tune-worker-0:1", "tune-worker-2:1"])
    (user.work / "out" / "gate").touch()
    assert user.wait(job) == 0
    assert user.ok("logs", f"{job}/0").splitlines()[1:] == [
        "from tune-worker-0 of 1",
        "from tune-worker-2 of 3",
    ]
    told = [row["sentence"] for row in user.rows("events", job)]
    assert any("is on its block list" in each for each in told)


@pytest.mark.req("EL-04", "EL-02", "JT-31")
def test_an_elastic_job_below_its_minimum_saves_is_suspended_and_resumes(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    size = {"workers": 2, "min_workers": 2}
    job = user.submit(SAVES, name="train", output="out", qos="low", specs=ONE, elastic=size)
    user.until(job, "running")
    urgent = user.submit(WAITS, name="urgent", output="urgent", qos="high", specs=ONE, nodes=2, mode="pytorch")
    user.until(urgent, "running")
    (row,) = user.rows("jobs", "--filter", "state:suspended", "--columns", "id,why,retries")
    assert (row["id"], row["retries"]) == (int(job), 0)
    assert row["why"].startswith("suspended until 2 workers can run, at most until ")
    assert (user.work / "out" / "checkpoint").read_text() == "saved\n"
    (user.work / "out" / "gate").touch()
    (user.work / "urgent" / "gate").touch()
    assert user.wait(job) == 0
    assert user.ok("logs", f"{job}/0") == "resumed 1, saved\n"


@pytest.mark.req("EL-05")
def test_an_unresponsive_worker_is_excluded(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    size = {"workers": 2, "max_wait_time": 3}
    job = user.submit(ANSWERS_ONCE, name="train", output="out", specs=ONE, elastic=size)
    eventually(lambda: any("it has not answered for" in row["sentence"] for row in user.rows("events", job)))
    (user.work / "out" / "gate").touch()
    assert user.wait(job) == 0


ACK = """
import os, queue, sys
import kubeai.elastic as kubeai

checkpoint_format = os.environ["COCKPIT_CHECKPOINTS"] + "/checkpoint-{epoch}.pth.tar"

def save_checkpoint(epoch):
    with kubeai.save(checkpoint_format.format(epoch=epoch)) as path:
        open(path, "w").write(str(epoch))

kubeai.init()
news = queue.Queue()
kubeai.on_change(news.put)
resume_from_epoch = 0
for try_epoch in range(9, 0, -1):
    if os.path.exists(checkpoint_format.format(epoch=try_epoch)):
        resume_from_epoch = try_epoch
        break
print("from", resume_from_epoch, "socket", '"workers"' in kubeai._connect().makefile().readline(), flush=True)
while kubeai.check_alive():
    print("notice", news.get()["rank"], flush=True)
save_checkpoint(resume_from_epoch + 1)
sys.exit(-1)
"""
"""The loop of ACK's example for spot instances, waiting for the notice instead of training."""


@pytest.mark.req("EL-02", "EL-03", "EL-04")
@pytest.mark.parametrize("person", ["user", "ann"])
def test_a_script_written_for_ack_saves_at_the_notice_and_resumes(request: pytest.FixtureRequest, person: str) -> None:
    user = request.getfixturevalue(person)
    user.configure("cluster.toml", RULES)
    user.write("train/algo/train.py", ACK)
    command = "/usr/bin/python3 /workspace/algorithm/train.py"
    size = {"workers": 1, "max_workers": 2, "allow_scaling": False}
    job = user.submit("", name="train", command=command, output="out", specs=ONE, elastic=size)
    for epoch, node in enumerate(("n1", "n2")):
        eventually(lambda epoch=epoch: user.run("logs", job).stdout == f"from {epoch} socket True\n".encode())
        user.ok("nodes", "drain", node, "--reason", "spot", "--within", "60s")
        eventually(lambda epoch=epoch: (user.work / f"out/checkpoint-{epoch + 1}.pth.tar").exists())
    eventually(lambda: user.run("logs", job).stdout == b"from 2 socket True\n")
    row = user.row("jobs", "--filter", f"id:{job}", "--columns", "state,retries")
    assert row == {"state": "running", "retries": 0}
    user.ok("cancel", job, "--now", "--yes")


FILLS = """
(head -c 200000000 /dev/zero; sleep infinity) | tail  # which keeps what may be its last line
"""


@pytest.mark.req("EL-02", "EL-01")
def test_a_reclaimed_node_costs_a_worker_and_no_failure(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    size = {"workers": 2, "max_workers": 2}
    job = user.submit(WATCHES, name="train", output="out", specs=ONE, elastic=size)
    eventually(lambda: sees(user, 0, 0, 1) and sees(user, 1, 0, 1))
    user.ok("nodes", "drain", "n2", "--reason", "spot", "--within", "60s")
    eventually(lambda: sees(user, 0, 0, 2) and sees(user, 2, 0, 2))
    assert user.ok("logs", f"{job}/1") == "saved\n"
    row = user.row("jobs", "--filter", f"id:{job}", "--columns", "state,retries,placed_on")
    assert row == {"state": "running", "retries": 0, "placed_on": ["n1", "n3"]}
    told = [row["sentence"] for row in user.rows("events", job)]
    assert any(each.startswith("its node is being reclaimed: replica 1 is recalled, and killed at ") for each in told)
    user.ok("cancel", job, "--now", "--yes")


SPOT_RULES = RULES.replace("cpus = 1,", 'cpus = 1, taints = ["spot"],')
AZURE = "/metadata/scheduledevents?api-version=2020-07-01"
PREEMPT = (
    '{{"DocumentIncarnation": 2, "Events": [{{"EventId": "A", "EventType": "Preempt", '
    '"ResourceType": "VirtualMachine", "Resources": ["vm-1"], "EventStatus": "Scheduled", '
    '"NotBefore": "{}", "EventSource": "Platform"}}]}}'
)


@pytest.mark.req("EL-01", "EL-02", "EL-04")
def test_a_job_waits_for_the_price_and_is_suspended_by_its_providers_notice(user: CockpitUser) -> None:
    cloud = HttpService()
    cloud.answer("GET /prices", "* 0.5")
    user.configure("cluster.toml", SPOT_RULES)
    settings = {"price_source": f"{cloud.address}/prices", "spot_provider": "azure", "spot_address": cloud.address}
    settings |= {"price_period": "1s", "spot_period": "1s"}
    user.configure("config.toml", "".join(f'{name} = "{value}"\n' for name, value in settings.items()))
    try:
        cloud.answer(f"GET {AZURE}", "<html>")
        user.ok("engine", "start")
        eventually(lambda: "does not answer as azure does" in user.run("doctor").stdout.decode())
        cloud.answer(f"GET {AZURE}", '{"DocumentIncarnation": 1, "Events": []}')
        eventually(lambda: user.row("nodes", "--filter", "name:n1", "--columns", "price")["price"] == 0.5)
        size = {"workers": 2, "max_workers": 2, "spot": True, "max_price": 0.4}
        job = user.submit(WATCHES, name="train", output="out", specs=ONE, elastic=size)
        eventually(lambda: "n1 costs 0.5" in user.ok("explain", job))
        cloud.answer("GET /prices", "* 0.35")
        eventually(lambda: sees(user, 0, 0, 1) and sees(user, 1, 0, 1))
        cloud.answer(f"GET {AZURE}", PREEMPT.format(formatdate(SystemClock().now() / 1000 + 60, usegmt=True)))
        eventually(lambda: user.row("jobs", "--filter", f"id:{job}")["state"] == "suspended")
        assert user.ok("logs", f"{job}/1") == "saved\n"
        assert "its provider (azure) takes it back at " in user.ok("events")
        user.ok("cancel", job, "--now", "--yes")
    finally:
        cloud.close()


@pytest.mark.req("EL-08")
def test_best_effort_yields_when_its_node_runs_short_of_memory(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    size = {"workers": 1, "best_effort": True}
    submitted = user.run("submit", str(user.job(FILLS, name="scraps", output="out", elastic=size)))
    job = submitted.stdout.decode().split()[-1]
    assert b"elastic.supervised: without it" in submitted.stderr
    eventually(lambda: user.row("jobs", "--filter", f"id:{job}")["state"] == "suspended")
    told = [row["sentence"] for row in user.rows("events", job)]
    assert any(each.startswith("its node runs short of memory, and best effort goes first") for each in told)
    user.ok("cancel", job, "--now", "--yes")
