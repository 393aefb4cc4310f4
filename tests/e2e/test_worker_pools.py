"""Worker pools, parameter servers and a sweep for real: each replica reads who the others are, and reaches them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.training import PAIRS

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

FOUR_NODES = "overcommit = true\n" + "".join(
    f'[[nodes]]\nname = "n{number}"\ncpus = 4\nmemory = "4G"\n' for number in range(1, 5)
)
SAID = "python3 /workspace/algorithm/train.py && touch /workspace/outputs/said-$COCKPIT_REPLICA"
ALL_SAID = "until [ $(ls /workspace/outputs | grep -c said) = $COCKPIT_REPLICAS ]; do sleep 0.05; done"
MEETS = f"bash -c '{SAID} && {ALL_SAID}'"
"""Who decides when a job ends leaves the others the time to say whom they met."""
SERVES = f"bash -c '{SAID} && exec sleep infinity'"
SMALL = {"cpus": 1, "memory": "256M"}


@pytest.mark.req("LA-60", "LA-61", "LA-20")
def test_every_pair_of_pools_and_of_servers_connects(user: CockpitUser) -> None:
    user.configure("cluster.toml", FOUR_NODES)
    user.write("pools/algo/train.py", PAIRS)
    user.write("flow/algo/train.py", PAIRS)
    pools = [{"spec": SMALL}, {"replicas": 2, "spec": SMALL, "command": SERVES}]
    job = user.submit("", name="pools", command=MEETS, mode="worker-pools", worker_pools=pools, specs=[SMALL])
    assert user.wait(job, 50) == 0
    met = "met pools-0:2222 pools-1:2222 pools-2:2222\n"
    assert [user.ok("logs", f"{job}/{rank}") for rank in range(3)] == [
        f"at pools-{rank}:2222 {met}" for rank in range(3)
    ]
    job = user.submit("", name="flow", command=MEETS, mode="tensorflow", parameter_servers=1, specs=[SMALL])
    assert user.wait(job, 50) == 0
    assert user.ok("logs", f"{job}/1") == "at flow-1:2222 met flow-0:2222 flow-1:2222\n"
    assert user.row("jobs", "--all", "--filter", f"id:{job}", "--columns", "state,nodes") == {
        "state": "succeeded",
        "nodes": 2,
    }


@pytest.mark.req("LA-63")
def test_a_sweep_is_an_array_of_trials(user: CockpitUser) -> None:
    sweep = {"parameters": {"lr": [0.1, 0.01], "layers": [2, 4]}, "parallel": 2}
    script = 'echo "$@" trial $COCKPIT_TRIAL'
    job = user.submit(script, name="search", sweep=sweep)
    assert user.wait(job, 50) == 0
    told = [user.ok("logs", f"{job}_{index}").strip() for index in range(4)]
    assert told == [
        f"--lr={lr} --layers={layers} trial {trial}"
        for trial, (lr, layers) in enumerate([(0.1, 2), (0.1, 4), (0.01, 2), (0.01, 4)], 1)
    ]
    rows = json.loads(user.ok("trials", job, "-o", "json"))["rows"]
    assert [(row["trial"], row["parameters"], row["state"]) for row in rows[:2]] == [
        ("1", {"lr": "0.1", "layers": "2"}, "succeeded"),
        ("2", {"lr": "0.1", "layers": "4"}, "succeeded"),
    ]
    assert "  Sweep 1  4 of 4 tasks have ended: 4 succeeded" in user.ok("job", f"{job}_2").splitlines()
