"""The cluster's prologs and epilogs on every node of every job, however it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.req("JT-24"), pytest.mark.usefixtures("host_mounts")]

RULES = """
nodes = [
    {{ name = "n1", cpus = 1, memory = "256M" }},
    {{ name = "n2", cpus = 1, memory = "256M" }},
]
prolog_bash_scripts = [{one}, {two}]
epilog_bash_scripts = [{last}]

[preemption]
type = "preempt/qos"
mode = ["REQUEUE"]

[[qos]]
name = "low"

[[qos]]
name = "high"
priority = 9
preempt = ["low"]
"""
SMALL = [{"cpus": 1, "memory": "64M"}]
WAITS = "trap 'exit 0' TERM; echo begun; while :; do sleep 0.05; done"


def notes(user: CockpitUser, then: str = "true") -> Path:
    """Let each script write down where it ran for which attempt of which job; the epilog then does something."""
    file = user.folder / "notes"
    says = f"echo {{}} $SLURMD_NODENAME $SLURM_JOB_NAME $SLURM_JOB_RESTART_COUNT >> {file}\n"
    scripts = {word: json.dumps("#!/bin/bash\n" + says.format(word)) for word in ("one", "two", "last")}
    scripts["last"] = json.dumps(f"#!/bin/bash\n{says.format('last')}{then}\n")
    user.configure("cluster.toml", RULES.format(**scripts))
    return file


def of(file: Path, job: str) -> list[str]:
    """What was noted of a job, without its name."""
    words = [line.split() for line in file.read_text().splitlines()]
    return [f"{what} {node} {attempt}" for what, node, name, attempt in words if name == job]


def test_node_scripts_run_in_order_on_every_node_however_the_job_ends(user: CockpitUser) -> None:
    file = notes(user)
    gang = user.submit("true", name="gang", nodes=2, mode="pytorch", specs=SMALL)
    assert user.wait(gang) == 0
    for node in ("n1", "n2"):
        assert [each for each in of(file, "gang") if f" {node} " in each] == [
            f"{what} {node} 0" for what in ("one", "two", "last")
        ]
    late = user.submit(WAITS, name="late", time_limit="1s", specs=SMALL)
    stopped = user.submit(WAITS, name="stopped", specs=SMALL)
    eventually(lambda: "begun" in user.ok("logs", stopped))
    user.ok("cancel", stopped, "--yes")
    user.wait(late)
    user.wait(stopped)
    for name in ("late", "stopped"):
        assert [each.split()[0] for each in of(file, name)] == ["one", "two", "last"]
    assert user.row("jobs", "--all", "--filter", f"id:{late}")["state"] == "expired"


def test_the_epilog_of_a_preempted_job_runs_before_its_preemptor_starts(user: CockpitUser) -> None:
    file = notes(user)
    victim = user.submit(WAITS, name="victim", nodes=2, mode="pytorch", qos="low", specs=SMALL)
    eventually(lambda: "begun" in user.ok("logs", f"{victim}/1"))
    urgent = user.submit("true", name="urgent", nodes=2, mode="pytorch", qos="high", specs=SMALL)
    assert user.wait(urgent) == 0
    user.until(victim, "running")
    names = [line.split()[2] for line in file.read_text().splitlines()]
    assert names == ["victim"] * 6 + ["urgent"] * 6 + ["victim"] * 4
    assert sorted(of(file, "victim"))[:2] == ["last n1 0", "last n2 0"]
    assert "one n1 1" in of(file, "victim")
    user.ok("cancel", victim, "--now", "--yes")


def test_a_failed_epilog_drains_the_node_and_does_not_change_the_end_of_the_job(user: CockpitUser) -> None:
    notes(user, "[ $SLURM_JOB_NAME != dirty ] || { echo disk is full >&2; exit 4; }")
    dirty = user.submit("true", name="dirty", specs=SMALL)
    assert user.wait(dirty) == 0
    (row,) = [row for row in user.rows("nodes", "--all") if row["status"] == "drained"]
    assert "epilog 1 ended with 4" in row["state_reason"]
    assert "disk is full" in row["state_reason"]
    next_one = user.submit("true", name="next", specs=SMALL)
    assert user.wait(next_one) == 0
    assert user.row("jobs", "--all", "--filter", f"id:{next_one}")["placed_on"] != [row["name"]]
