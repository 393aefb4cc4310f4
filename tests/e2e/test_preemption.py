"""Jobs give way for real: ended with their grace, requeued, frozen, and back again; both histories say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

RULES = """
nodes = [{{ name = "n1", cpus = 2, memory = "512M" }}]

[preemption]
type = "preempt/qos"
mode = [{mode}]

[[qos]]
name = "low"
grace_time = "30s"

[[qos]]
name = "high"
priority = 9
preempt = ["low"]
"""
WHOLE = [{"cpus": 2, "memory": "64M"}]
COUNTS = "n=0; while :; do n=$((n+1)); echo $n > /workspace/outputs/{name}; done"


def engine(user: CockpitUser, *mode: str) -> None:
    user.configure("cluster.toml", RULES.format(mode=", ".join(f'"{each}"' for each in mode)))


def told(user: CockpitUser, job: str) -> str:
    return "\n".join(row["sentence"] for row in user.rows("events", job))


@pytest.mark.req("SC-08")
def test_a_preempted_job_is_signalled_first_requeued_and_runs_again(user: CockpitUser) -> None:
    engine(user, "REQUEUE")
    script = "trap 'echo saved; exit 9' TERM; echo begun; while :; do sleep 0.1; done"
    victim = user.submit(script, name="victim", qos="low", specs=WHOLE)
    eventually(lambda: "begun" in user.ok("logs", victim))
    urgent = user.submit("echo mine", name="urgent", qos="high", specs=WHOLE)
    assert user.wait(urgent) == 0
    user.until(victim, "running")
    assert "saved" in user.ok("logs", f"{victim}#1")
    eventually(lambda: "begun" in user.ok("logs", f"{victim}#2"))
    assert f"is preempted by job {urgent}" in told(user, victim)
    assert f"job {victim} ends, to wait again, for it" in told(user, urgent)
    user.ok("cancel", victim, "--now", "--yes")


@pytest.mark.req("SC-08")
def test_a_job_that_ignores_the_signal_is_killed_after_the_grace(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES.format(mode='"CANCEL"').replace('"30s"', '"1s"'))
    victim = user.submit("trap '' TERM; echo begun; while :; do sleep 0.1; done", name="deaf", qos="low", specs=WHOLE)
    eventually(lambda: "begun" in user.ok("logs", victim))
    urgent = user.submit("true", name="urgent", qos="high", specs=WHOLE)
    assert user.wait(urgent) == 0
    row = user.row("jobs", "--all", "--filter", f"id:{victim}")
    assert (row["state"], row["end_cause"], row["exit_code"]) == ("stopped", "preempted", 137)


@pytest.mark.req("SC-08", "JT-31")
def test_a_suspended_job_is_paused_and_resumes(user: CockpitUser) -> None:
    engine(user, "SUSPEND", "GANG")
    victim = user.submit(COUNTS.format(name="n"), name="victim", qos="low", output="out", specs=WHOLE)
    count = user.work / "out" / "n"
    eventually(lambda: count.exists() and count.read_text())
    gate = user.work / "urgent" / "gate"
    waits = "touch /workspace/outputs/here; while [ ! -e /workspace/outputs/gate ]; do sleep 0.05; done"
    urgent = user.submit(waits, name="urgent", qos="high", output="urgent", specs=WHOLE)
    eventually((user.work / "urgent" / "here").exists)
    assert user.row("jobs", "--filter", f"id:{victim}")["state"] == "suspended"
    before = count.read_text()
    assert user.ok("cluster", "show")  # as long as that takes
    assert count.read_text() == before
    refused = user.run("resume", victim)
    assert "was preempted by another" in refused.stderr.decode()
    assert f"job {urgent}" in user.looked_at(victim)["why"]
    gate.touch()
    assert user.wait(urgent) == 0
    user.until(victim, "running")
    eventually(lambda: count.read_text() != before)
    user.ok("suspend", victim)
    user.ok("cancel", victim, "--now", "--yes")
    assert user.wait(victim) != 0
