"""Jobs that fail or are interrupted and begin again for real: the same id, a log for each attempt, the container of the
last one kept, a checkpoint to go on from."""

from __future__ import annotations

import json
import os
import pwd
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

COUNTS = """
cd /workspace/outputs
n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n
echo "this is attempt $COCKPIT_ATTEMPT"
"""


@pytest.mark.req("JT-18", "JT-40")
def test_a_failed_job_is_restarted_until_it_succeeds_or_no_restart_is_left(user: CockpitUser) -> None:
    script = f"{COUNTS}[ $COCKPIT_ATTEMPT -ge $GOOD ] || exit 3"
    heals = user.submit(script, name="heals", restart={"max_restarts": 3}, env={"GOOD": "3"}, terminal=True)
    assert user.wait(heals) == 0
    merged = [json.loads(line) for line in user.ok("logs", f"{heals}#2", "--merged", "-o", "jsonl").splitlines()]
    assert [(each["stream"], each["line"]) for each in merged] == [("stdout", "this is attempt 2")]
    assert [user.ok("logs", f"{heals}#{attempt}") for attempt in (1, 2, 3)] == [
        f"this is attempt {attempt}\n" for attempt in (1, 2, 3)
    ]
    dies = user.submit(script, name="dies", restart={"max_restarts": 1}, env={"GOOD": "9"}, terminal=True)
    assert user.wait(dies) == 3
    row = user.row("jobs", "--all", "--filter", f"id:{dies}")
    assert (row["state"], row["attempt"], row["retries"], row["why"]) == ("error", 2, 1, "exit 3; retry 1 of 1")
    assert user.ok("shell", dies, "--", "cat", "/workspace/outputs/n") == "2\n"
    page = user.ok("job", dies)
    assert f"{dies}#2 dies" in page
    assert "attempt #1" in page
    assert "failed (exit 3) and begins again, retry 1" in page


RULES = """
max_resumes = 2
nodes = [{ name = "n1", cpus = 1, memory = "512M", pool = "training" }]

[preemption]
type = "preempt/qos"
mode = ["CANCEL"]

[[qos]]
name = "low"

[[qos]]
name = "high"
priority = 9
preempt = ["low"]
"""
TRAINS = """
cd "$COCKPIT_CHECKPOINTS"
step=$(cat checkpoint 2>/dev/null || echo 0)
echo "resume $COCKPIT_RESUME of $COCKPIT_MAX_RESUMES at step $step"
trap 'echo $step > checkpoint; echo saved; exit 255' TERM
while [ ! -e done ]; do step=$((step + 1)); echo $step > now; sleep 0.05; done
"""


@pytest.mark.req("JT-17", "EL-02")
def test_an_interrupted_job_resumes_from_its_checkpoint(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    small = [{"cpus": 1, "memory": "64M"}]
    resume = {"max_resumes": 1, "grace_period": "30s"}
    refused = user.run(
        "submit", str(user.job("true", name="greedy", pool="training", resume={**resume, "max_resumes": 3}))
    )
    assert b"resume.max_resumes: 3 is more than the 2 that this cluster allows" in refused.stderr
    job = user.submit(TRAINS, name="train", qos="low", pool="training", resume=resume, specs=small)
    steps = user.work / "train/out/now"
    eventually(lambda: steps.exists() and steps.read_text().strip() not in {"", "1"})
    urgent = user.submit("true", name="urgent", qos="high", specs=small)
    assert user.wait(urgent) == 0
    user.until(job, "running")
    saved = (user.work / "train/out/checkpoint").read_text().strip()
    assert user.ok("logs", f"{job}#1") == "resume 0 of 1 at step 0\nsaved\n"
    eventually(lambda: user.ok("logs", f"{job}#2") == f"resume 1 of 1 at step {saved}\n")
    (user.work / "train/out/done").touch()
    assert user.wait(job) == 0
    row = user.row("jobs", "--all", "--filter", f"id:{job}")
    assert (row["state"], row["attempt"], row["retries"]) == ("succeeded", 2, 0)


WATCHED = """
nodes = [
    { name = "n1", cpus = 1, memory = "512M", pool = "training" },
    { name = "n2", cpus = 1, memory = "512M", pool = "training" },
]
overcommit = true
"""
SLOW_AT_FIRST = """
trap 'exit 255' TERM
[ "$COCKPIT_RESUME" = 0 ] && e2e=1000.5 || e2e=4000
echo "this iteration hardware time is 999.5 and e2e time is $e2e ms."
touch $COCKPIT_OUTPUTS/attempt-$COCKPIT_ATTEMPT
while [ ! -e $COCKPIT_OUTPUTS/done ]; do sleep 0.05; done
"""


@pytest.mark.req("EL-13", "JT-17", "JT-49")
def test_a_job_with_slow_iterations_is_reported_and_resumes_on_other_nodes(user: CockpitUser) -> None:
    user.configure("cluster.toml", WATCHED)
    mail, told = user.work / "mail", user.work / "told"
    user.configure("config.toml", f'alert_mail = "tee {mail}"\nalert_command = "tee {told}"\n')
    user.ok("catalogue", "add", "user", pwd.getpwuid(os.geteuid()).pw_name, "email=me@example.org")
    performance = {"threshold": 0.9, "action": "reschedule-and-alert"}
    resume = {"max_resumes": 1, "grace_period": "30s", "performance": performance}
    small = [{"cpus": 1, "memory": "64M"}]
    job = user.submit(SLOW_AT_FIRST, name="train", pool="training", resume=resume, specs=small)
    eventually((user.work / "train/out/attempt-2").exists)
    (user.work / "train/out/done").touch()
    assert user.wait(job) == 0
    page = user.ok("job", job)
    assert "its iterations are slow: their hardware took 0.999 of the whole time, above 0.9" in page
    assert user.row("jobs", "--all", "--filter", f"id:{job}")["retries"] == 1
    eventually(lambda: told.exists() and f'"job":{job}' in told.read_text())
    eventually(lambda: mail.exists() and "To: me@example.org" in mail.read_text())


GROWS = """
trap 'exit 0' TERM
echo "replica $COCKPIT_REPLICA of $COCKPIT_REPLICAS, resume $COCKPIT_RESUME"
while [ ! -e $COCKPIT_OUTPUTS/done ]; do sleep 0.05; done
"""


@pytest.mark.req("EL-12", "JT-17")
def test_a_resuming_job_starts_smaller_and_grows_when_nodes_are_free(user: CockpitUser) -> None:
    user.configure("cluster.toml", WATCHED)
    small = [{"cpus": 1, "memory": "64M"}]
    other = user.submit("while [ ! -e /workspace/outputs/go ]; do sleep 0.05; done", name="other", specs=small)
    user.until(other, "running")
    resume = {"max_resumes": 1, "grace_period": "5s", "elastic": {"min_nodes": 1, "allow_scaling": True}}
    job = user.submit(GROWS, name="train", nodes=2, mode="pytorch", pool="training", resume=resume, specs=small)
    user.until(job, "running")
    assert user.row("jobs", "--filter", f"id:{job}", "--columns", "nodes") == {"nodes": 1}
    (user.work / "other/out/go").touch()
    eventually(lambda: user.row("jobs", "--filter", f"id:{job}", "--columns", "nodes") == {"nodes": 2})
    eventually(lambda: "replica 1 of 2, resume 0" in user.ok("logs", f"{job}/1"))
    (user.work / "train/out/done").touch()
    assert user.wait(job) == 0
    assert user.ok("logs", f"{job}/0") == "replica 0 of 1, resume 0\n"
